"""The process of the control plane: start, wait, stop.

Decides how its errors are read and how long a start may take. Must not know what the control plane
does. It runs as ``python -m amphitrite.controlplane``, and reports through ``server.json`` and one
line on stderr.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from amphitrite.cli.terminal import home_directory as homes
from amphitrite.cli.terminal.progress import Progress
from amphitrite.schemas.errors import Error

#: Prefix of the line on stderr that holds the body of an Error.
ERROR_PREFIX = "amphitrite-error: "
#: Longer than the control plane's own time limit, so that its own error is reported.
START_TIMEOUT_S = 70.0
#: Modules that only the control plane needs.
MODULES = ("fastapi", "uvicorn", "sqlalchemy", "psutil")
_POLL_S = 0.05
_LOG_LINES = 15


def require_server(modules: Sequence[str] = MODULES) -> None:
    """Raises Error Unsupported if the control plane is not installed, or not on Linux."""
    if sys.platform != "linux":
        raise Error(
            "Unsupported", "the server runs on Linux only", hint="use --server-url to connect to a remote server"
        )
    missing = [name for name in modules if not importlib.util.find_spec(name)]
    if missing:
        raise Error(
            "Unsupported",
            f"the control plane is not installed; missing Python modules: {', '.join(missing)}",
            hint="in a checkout of amphitrite: make install",
        )


def command(verb: str, home: Path, *arguments: str) -> list[str]:
    """The argv for a verb of the control plane of ``home``."""
    return [sys.executable, "-m", "amphitrite.controlplane", verb, "--home", str(home), *arguments]


def start_detached(home: Path, arguments: Sequence[str], progress: Progress) -> dict[str, Any]:
    """Start a control plane in the background; return its ``server.json`` as soon as it runs.

    Raises the Error that it reports, InternalServerError if it exits without one, or
    RuntimeUnavailable if it is not ready after START_TIMEOUT_S.
    """
    logs = homes.log_directory(home)
    errors = logs / "start.log"
    with _create_log(errors) as stream:
        child = subprocess.Popen(
            command("start", home, *arguments),
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )
    deadline = time.monotonic() + START_TIMEOUT_S
    while child.poll() is None:
        state = homes.read_state(home)
        if state is not None and state["pid"] == child.pid:
            progress.phase(str(state["state"]))
            if state["state"] == "running":
                return state
        if time.monotonic() > deadline:
            child.terminate()
            child.wait()
            message = f"the control plane was not ready after {START_TIMEOUT_S:.0f} s"
            raise Error("RuntimeUnavailable", message, hint="run `ml server logs`")
        time.sleep(_POLL_S)
    output = _tail(errors)
    _remove_log(errors)
    raise _exit_error(child.returncode, output, logs / "controlplane.log")


def _create_log(errors: Path) -> BinaryIO:
    """Create the file, and ML_HOME if needed, both for their owner only.

    Raises Error LocalFileError.
    """
    try:
        errors.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        errors.parent.parent.chmod(0o700)
        descriptor = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    except OSError as exc:
        hint = "set ML_HOME to a writable directory"
        raise Error("LocalFileError", f"cannot create {exc.filename}: {exc.strerror}", hint=hint) from exc
    os.fchmod(descriptor, 0o600)
    return os.fdopen(descriptor, "wb")


def _remove_log(errors: Path) -> None:
    """Remove the log of a failed start, and its directories if they are empty."""
    errors.unlink(missing_ok=True)  # two processes that start at once share it
    with suppress(OSError):  # not empty
        errors.parent.rmdir()
        errors.parent.parent.rmdir()


def exec_server(home: Path, arguments: Sequence[str]) -> NoReturn:
    """Replace this process by the control plane, which prints its addresses or its error to stderr.

    It then receives signals and sets the exit code directly, also as process 1 of a container.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    argv = command("start", home, "--foreground", *arguments)
    os.execv(argv[0], argv)


def stop(home: Path, *, keep_serving: bool) -> None:
    """Stop the processes of ``home`` and wait until they have ended. Raises Error."""
    arguments = ["--keep-serving"] if keep_serving else []
    process = subprocess.run(command("stop", home, *arguments), capture_output=True, text=True, check=False)
    if process.returncode != 0:
        raise _exit_error(process.returncode, process.stderr, homes.log_directory(home) / "controlplane.log")


def _exit_error(code: int, output: str, log: Path) -> Error:
    """The Error on a line with ERROR_PREFIX, or one with the last lines of the log."""
    for line in output.splitlines():
        if line.startswith(ERROR_PREFIX):
            return Error.from_body(json.loads(line.removeprefix(ERROR_PREFIX)))
    tail = "\n".join((output.strip() or _tail(log)).splitlines()[-_LOG_LINES:])
    return Error(
        "InternalServerError", f"the control plane exited with code {code}\n{tail}", hint="run `ml server logs`"
    )


def _tail(log: Path) -> str:
    try:
        return log.read_text(errors="replace")
    except OSError:
        return ""
