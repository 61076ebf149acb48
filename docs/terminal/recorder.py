"""Runs commands in a pseudo terminal and notes what it shows, and when.

Decides the size of the terminal, and that a pause in which nothing changes is shortened. Must not
know which commands.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import drawing
import screen

COLUMNS = 120
#: Seconds between two frames at least, and the longest pause in a recording.
_STEP_S, _PAUSE_S = 0.4, 1.5
#: Seconds of silence after which the reply to a key has come.
_QUIET_S = 2.0
_LIMIT_S = 240.0


@dataclass(frozen=True, slots=True)
class Command:
    """``line``: for bash. ``interrupt_after``: seconds until Ctrl-C. ``keys``: typed into a shell
    with completion instead of running the line."""

    line: str
    interrupt_after: float | None = None
    keys: str | None = None


def record(commands: tuple[Command, ...], directory: Path, environ: Mapping[str, str]) -> list[drawing.Frame]:
    """The frames of the commands, one after the other, on one screen."""
    terminal, frames = screen.Screen(COLUMNS), []
    film = _Film(terminal, frames)
    for command in commands:
        if command.keys is None:
            terminal.feed(f"$ {command.line}\r\n")
            film.frame()
            _run(["bash", "-c", command.line], command, directory, environ, film)
        else:
            _type(command, directory, environ, film)
        film.frame()
    return frames


class _Film:
    def __init__(self, terminal: screen.Screen, frames: list[drawing.Frame]) -> None:
        self.terminal, self._frames = terminal, frames
        self._at, self._last = 0.0, time.monotonic()

    def frame(self) -> None:
        """Note the screen, if it differs from the last frame."""
        now, rows = time.monotonic(), self.terminal.rows()
        if self._frames and self._frames[-1][1] == rows:
            return
        if self._frames:
            self._at += min(_PAUSE_S, max(_STEP_S, now - self._last))
        self._last = now
        self._frames.append((self._at, rows))


def _run(line: list[str], command: Command, directory: Path, environ: Mapping[str, str], film: _Film) -> None:
    reader, writer = _terminal()
    began = time.monotonic()
    process = subprocess.Popen(
        line, stdin=writer, stdout=writer, stderr=writer, cwd=directory, env=environ, start_new_session=True
    )
    os.close(writer)
    interrupted, framed = False, began
    while True:
        if select.select([reader], [], [], 0.05)[0]:
            try:
                data = os.read(reader, 65536)
            except OSError:  # the last writer is gone
                break
            film.terminal.feed(data.decode(errors="replace"))
        now = time.monotonic()
        if now - framed >= _STEP_S:
            film.frame()
            framed = now
        if command.interrupt_after is not None and not interrupted and now - began >= command.interrupt_after:
            film.terminal.feed("^C")
            os.killpg(process.pid, signal.SIGINT)
            interrupted = True
        if now - began > _LIMIT_S:
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    os.close(reader)
    if film.terminal.rows():
        film.terminal.feed("\r\x1b[K")


def _type(command: Command, directory: Path, environ: Mapping[str, str], film: _Film) -> None:
    """An interactive bash with the completion of ``ml``, in which keys are pressed."""
    reader, writer = _terminal()
    process = subprocess.Popen(
        ["bash", "--norc", "--noprofile", "-i"],
        stdin=writer,
        stdout=writer,
        stderr=writer,
        cwd=directory,
        env={**environ, "PS1": "$ "},
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(writer)
    _quiet(reader)
    os.write(reader, b'bind "set enable-bracketed-paste off"; eval "$(ml completion bash)"; PS1="$ "; clear\n')
    _quiet(reader)
    film.terminal.feed("$ ")
    for key in (command.line, *(command.keys or "")):
        os.write(reader, key.encode())
        film.terminal.feed(_quiet(reader))
        film.frame()
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    os.close(reader)
    film.terminal.feed("\r\n")


def _quiet(reader: int) -> str:
    """What is written until nothing more comes."""
    text = b""
    while select.select([reader], [], [], _QUIET_S)[0]:
        text += os.read(reader, 65536)
    return text.decode(errors="replace")


def _terminal() -> tuple[int, int]:
    reader, writer = pty.openpty()
    fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    return reader, writer
