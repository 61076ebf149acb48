"""The check of the small files of a home: certificates, credentials, and records of processes.

Decides what a good file of each kind is. Must not know who reads it.
"""

from __future__ import annotations

import json
from pathlib import Path

from amphitrite.controlplane.auth import certificates, credentials
from amphitrite.controlplane.settings.home import Home
from amphitrite.controlplane.store.checks.findings import Report
from amphitrite.schemas.errors import Error
from amphitrite.schemas.sealed_json import unseal

CERTIFICATES, CREDENTIALS, RECORDS = "certificates", "credentials", "records"
_RECORD = "it is not used, and written again by the next start: `ml server start -d`"
_BACKUP = "restore the file from a backup: `tar -xf BACKUP {name}`"


def check(home: Home, report: Report) -> None:
    """Raises OSError."""
    for path in _files(home.certificates):
        report.count(CERTIFICATES, 1, path.stat().st_size)
    for name, problem, hint in certificates.problems(home):
        report.add(CERTIFICATES, f"certificates/{name}", problem, hint)
    for path in _files(home.credentials):
        report.count(CREDENTIALS, 1, path.stat().st_size)
        name = f"credentials/{path.name}"
        try:
            credentials.check(path)
        except Error as error:
            report.add(CREDENTIALS, name, error.message, _BACKUP.format(name=name))
    for path in (home.server_file, *_files(home.dataplane), *sorted(home.instances.glob("*/instance.json"))):
        if path.suffix == ".json" and path.is_file():
            report.count(RECORDS, 1, path.stat().st_size)
            _check_record(home, path, report)


def _check_record(home: Home, path: Path, report: Report) -> None:
    try:
        unseal(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return  # Its process has just ended.
    except (ValueError, json.JSONDecodeError) as exc:
        report.add(RECORDS, str(path.relative_to(home.root)), f"it cannot be read: {exc}", _RECORD)


def _files(directory: Path) -> list[Path]:
    if not directory.is_dir():
        return []
    return sorted(path for path in directory.iterdir() if path.is_file() and not path.name.startswith("."))
