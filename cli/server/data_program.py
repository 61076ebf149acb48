"""The programs that work on the data of a control plane, in a process of their own.

Decides how one is run, and how its answer and its error come back: it prints one JSON object, or
one line ``amphitrite-error: {...}``. Must not know what it does.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from amphitrite.cli.server import server_process
from amphitrite.cli.session.session import Session
from amphitrite.cli.terminal import home_directory as homes
from amphitrite.schemas import database_urls
from amphitrite.schemas.errors import Error

_LINES = 15


def run(
    session: Session, program: str, verb: str, options: Mapping[str, str | None], *words: str, phase: str = "copying"
) -> dict[str, Any]:
    """The JSON object that ``python -m amphitrite.controlplane.<program> <verb>`` printed; an empty
    ``verb`` is left out. Raises the Error that it reported."""
    server_process.require_server()
    for option in ("--database", "--from", "--to"):
        variable = "ML_DATABASE_URL" if option == "--database" else None
        database_urls.refuse_password(option, options.get(option), variable=variable)
    command = [sys.executable, "-m", f"amphitrite.controlplane.{program}", *([verb] if verb else [])]
    command += ["--home", str(homes.path())]
    command += [f"{option}={value}" for option, value in options.items() if value is not None]
    command += ["--", *words] if words else []
    with session.progress(verb or "check") as progress:
        progress.phase(phase)
        process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode == 0:
        answer: dict[str, Any] = json.loads(process.stdout)
        return answer
    for line in process.stderr.splitlines():
        if line.startswith(server_process.ERROR_PREFIX):
            raise Error.from_body(json.loads(line.removeprefix(server_process.ERROR_PREFIX)))
    tail = "\n".join(process.stderr.strip().splitlines()[-_LINES:])
    raise Error("InternalServerError", f"{verb or 'check'} exited with code {process.returncode}\n{tail}")
