"""The control plane as a process: starting it, waiting for it, ending it.

Decides how its refusal is read and how long starting may take. Must not know what it does: it is run as
``python -m amphitrite.controlplane`` and speaks through ``server.json`` and one line on stderr.
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

#: One line of stderr with the body of an Error behind it.
REFUSAL = "amphitrite-error: "
#: A little longer than it waits itself, so that it can say what was missing.
START_TIMEOUT_S = 70.0
#: What the control plane needs and the command line does not.
MODULES = ("fastapi", "uvicorn", "sqlalchemy", "psutil")
_POLL_S = 0.05
_LOG_LINES = 15


def require_server(modules: Sequence[str] = MODULES) -> None:
    """Raises Error Unsupported where only the command line is installed, and on a system that cannot serve."""
    if sys.platform != "linux":
        raise Error("Unsupported", "models are served on Linux only", hint="use --server-url for a server elsewhere")
    missing = [name for name in modules if not importlib.util.find_spec(name)]
    if missing:
        raise Error(
            "Unsupported",
            f"the control plane is not installed here: no module {', '.join(missing)}",
            hint="in a checkout of amphitrite: make install",
        )


def command(verb: str, home: Path, *arguments: str) -> list[str]:
    """The argv of a control plane for ``home``."""
    return [sys.executable, "-m", "amphitrite.controlplane", verb, "--home", str(home), *arguments]


def detach(home: Path, arguments: Sequence[str], progress: Progress) -> dict[str, Any]:
    """Start a control plane that outlives this terminal; what it says about itself once it runs.

    Raises the Error with which it refused, or RuntimeUnavailable when it ended or was not ready in time.
    """
    logs = homes.logs(home)
    errors = logs / "start.log"
    with _private(errors) as stream:
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
            message = f"the control plane did not come up within {START_TIMEOUT_S:.0f} s"
            raise Error("RuntimeUnavailable", message, hint="ml server logs")
        time.sleep(_POLL_S)
    said = _tail(errors)
    _forget(errors)
    raise _ended(child.returncode, said, logs / "controlplane.log")


def _private(errors: Path) -> BinaryIO:
    """A new file for its owner alone, and the home around it. Raises Error LocalFileError."""
    try:
        errors.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        errors.parent.parent.chmod(0o700)
        descriptor = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    except OSError as exc:
        hint = "set ML_HOME to a directory that can be written"
        raise Error("LocalFileError", f"cannot make {exc.filename}: {exc.strerror}", hint=hint) from exc
    os.fchmod(descriptor, 0o600)
    return os.fdopen(descriptor, "wb")


def _forget(errors: Path) -> None:
    """What refuses to start leaves nothing behind: the file goes, and the directories if they were made for it."""
    errors.unlink(missing_ok=True)  # two that start at once share it
    with suppress(OSError):  # not empty: somebody else's
        errors.parent.rmdir()
        errors.parent.parent.rmdir()


def become(home: Path, arguments: Sequence[str]) -> NoReturn:
    """Be the control plane from here on, in this very process: signals, exit code and, in a container, the duties of
    the first process are its own. It says on stderr where it runs, or what it refuses."""
    sys.stdout.flush()
    sys.stderr.flush()
    argv = command("start", home, "--foreground", *arguments)
    os.execv(argv[0], argv)


def stop(home: Path, *, keep_serving: bool) -> None:
    """End whatever runs of ``home``; returns when it has ended. Raises Error."""
    arguments = ["--keep-serving"] if keep_serving else []
    ended = subprocess.run(command("stop", home, *arguments), capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise _ended(ended.returncode, ended.stderr, homes.logs(home) / "controlplane.log")


def _ended(code: int, said: str, log: Path) -> Error:
    """The Error on a ``REFUSAL`` line; without one, the last lines of what was said or logged."""
    for line in said.splitlines():
        if line.startswith(REFUSAL):
            return Error.from_body(json.loads(line.removeprefix(REFUSAL)))
    tail = "\n".join((said.strip() or _tail(log)).splitlines()[-_LOG_LINES:])
    return Error("InternalServerError", f"the control plane ended with code {code}\n{tail}", hint="ml server logs")


def _tail(log: Path) -> str:
    try:
        return log.read_text(errors="replace")
    except OSError:
        return ""
