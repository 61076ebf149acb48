"""``python -m amphitrite.controlplane.integrity``: the program of ``ml server check``.

Decides its arguments and output: one JSON object on stdout, or one line ``amphitrite-error: {...}``
on stderr and exit code 1. The control plane may run or not. Must not know what a good file is.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from amphitrite.controlplane.integrity import home_check
from amphitrite.controlplane.settings import settings
from amphitrite.controlplane.settings.home import Home
from amphitrite.controlplane.settings.settings import Settings
from amphitrite.controlplane.store.checks import content_check, database_check
from amphitrite.controlplane.store.checks.findings import Report
from amphitrite.controlplane.store.content.content_store import open_content
from amphitrite.controlplane.store.migrations import current_revision
from amphitrite.controlplane.store.sql.tables import REVISION
from amphitrite.controlplane.store.sql.transactions import Database
from amphitrite.schemas.errors import Error


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit code: 0 if everything could be checked, whatever was found."""
    parser = argparse.ArgumentParser(prog="python -m amphitrite.controlplane.integrity")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--database")
    parser.add_argument("--models")
    parser.add_argument("--repair", choices=("yes", "no"), default="no")
    arguments = parser.parse_args(argv)
    os.umask(0o077)
    try:
        chosen = settings.read(
            os.environ,
            home=arguments.home.expanduser().absolute(),
            database_url=arguments.database,
            models_url=arguments.models,
        )
        report = check(chosen, repair=arguments.repair == "yes")
    except Error as error:
        print(f"amphitrite-error: {json.dumps(error.to_body())}", file=sys.stderr, flush=True)
        return 1
    print(json.dumps(report.to_json()))
    return 0


def check(chosen: Settings, *, repair: bool = False) -> Report:
    """Checks everything of one control plane. ``repair``: what can be made again is.

    Raises Error LocalFileError (there is no such home) or RuntimeUnavailable (the database or the
    content store does not answer).
    """
    home, report = chosen.home, Report()
    if not home.root.is_dir():
        raise Error("LocalFileError", f"{home.root} does not exist", hint="set ML_HOME to the directory of a server")
    try:
        home_check.check(home, report)
        _check_database(chosen, report, repair=repair)
    except Error as error:
        if not any(one.kind == database_check.KIND for one in report.damaged):
            raise
        report.notes.append(f"rows and model files were not all checked: {error.message}")
    except OSError as exc:
        raise Error("LocalFileError", f"{exc.filename or home.root}: {exc.strerror or exc}") from exc
    return report


def _check_database(chosen: Settings, report: Report, *, repair: bool) -> None:
    database = Database(chosen.database_url)
    try:
        if not database.is_shared:
            path = Path(database.place)
            if not path.exists() or not path.stat().st_size:
                report.notes.append(f"there is no database at {path}, so no model files were checked")
                return
            database_check.check_file(path, report, in_use=_runs(chosen.home))
        with database.read() as connection:
            revision = current_revision(connection)
        if revision != REVISION:
            message = f"the database has the schema of another release ({revision}), so its rows and model files were "
            report.notes.append(message + "not checked: start the server once with this release")
            return
        database_check.check_rows(database, report)
        content = open_content(chosen.models_url, chosen.home.models, time.time)
        content_check.check(database, content, chosen.home.models, report, repair=repair)
    finally:
        database.close()


def _runs(home: Home) -> bool:
    """Whether a control plane of this home runs."""
    try:
        descriptor = os.open(home.lock_file, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


if __name__ == "__main__":
    sys.exit(main())
