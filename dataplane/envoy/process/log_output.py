"""Where Envoy's own log goes: to a file on one machine, to the agent's output in a container.

Decides that, and which line is the last error. Must not know why Envoy runs or ends.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Literal, Protocol

from amphitrite.dataplane.machine.json_log import log

#: Envoy's default log format: ``[time][thread][level][logger] [file:line] message``.
_LINE = re.compile(r"\[[^\]]*\]\[\d+\]\[(?P<level>\w+)\]\[(?P<logger>[\w.]+)\] (\[[^\]]*\] )?(?P<text>.*)")
_LEVELS: dict[str, Literal["info", "warning", "error"]] = {
    "warning": "warning",
    "error": "error",
    "critical": "error",
}


class LogOutput(Protocol):
    """One for all Envoys that an agent starts, one after the other."""

    #: The options for Envoy's command line.
    arguments: tuple[str, ...]

    def start(
        self, command: list[str], environment: Mapping[str, str], inherited: tuple[int, ...] = ()
    ) -> subprocess.Popen[bytes]:
        """Run ``command`` in a session of its own, with this output and the ``inherited``
        descriptors. ``environment`` is added to the agent's."""
        ...

    def last_error(self) -> str:
        """The last line that the present Envoy logged as an error; empty: none."""
        ...


class FileOutput:
    """Appends everything to one file, which outlives the agent."""

    def __init__(self, path: Path) -> None:
        self.arguments: tuple[str, ...] = ("--log-path", str(path))
        self._path = path
        self._offset = 0  #: Where the present process began to write.

    def start(
        self, command: list[str], environment: Mapping[str, str], inherited: tuple[int, ...] = ()
    ) -> subprocess.Popen[bytes]:
        with open(self._path, "ab") as output:
            self._offset = output.tell()
            return subprocess.Popen(
                command,
                env=os.environ | environment,
                pass_fds=inherited,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def last_error(self) -> str:
        try:
            with open(self._path, "rb") as stream:
                stream.seek(self._offset)
                lines = stream.read()[-65536:].decode(errors="replace").splitlines()
        except OSError:
            return ""
        errors = [line for line in lines if "][error]" in line or "][critical]" in line]
        return errors[-1] if errors else ""


class StreamOutput:
    """Turns the lines of Envoy's log into lines of the agent's. The access log goes to standard
    output, which Envoy inherits. The streams are separate because Envoy writes many requests at
    once, and other lines would end up in the middle of them."""

    def __init__(self) -> None:
        self.arguments: tuple[str, ...] = ()
        self._last_error = ""
        self._reader: threading.Thread | None = None

    def start(
        self, command: list[str], environment: Mapping[str, str], inherited: tuple[int, ...] = ()
    ) -> subprocess.Popen[bytes]:
        self._last_error = ""
        child = subprocess.Popen(
            command,
            env=os.environ | environment,
            pass_fds=inherited,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert child.stderr is not None
        self._reader = threading.Thread(target=self._pass_on, args=(child.stderr,), name="envoy-log", daemon=True)
        self._reader.start()
        return child

    def last_error(self) -> str:
        """As ``LogOutput``. An Envoy that has ended may have written lines that are still to be
        read: they are waited for, half a second at most."""
        if self._reader is not None:
            self._reader.join(0.5)
        return self._last_error

    def _pass_on(self, stream: IO[bytes]) -> None:
        with stream:
            for raw in stream:
                level, logger, text = parse_line(raw.decode(errors="replace").rstrip())
                if level == "error":
                    self._last_error = text
                # Envoy stops when nobody reads: reading goes on even where nothing can be written.
                with contextlib.suppress(OSError):
                    log(level, text, logger=logger)


def parse_line(line: str) -> tuple[Literal["info", "warning", "error"], str, str]:
    """(level, logger, message) of a line of Envoy's log. A line of another form is an info message
    as a whole."""
    match = _LINE.fullmatch(line)
    if match is None:
        return "info", "envoy", line
    return _LEVELS.get(match["level"], "info"), f"envoy.{match['logger']}", match["text"]
