"""The start of an isolated process, seen from the control plane.

Decides what the launcher is told, and what its answer means. Must not know what an instance sees.
"""

from __future__ import annotations

import errno
import json
import marshal
import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amphitrite.controlplane.runtimes.isolation import launcher
from amphitrite.controlplane.runtimes.isolation.view import Mount


@dataclass(frozen=True, slots=True)
class Plan:
    """``base``: a directory that is there, over which the new file system is mounted for a moment.

    * ``directory``: where the program starts, as the instance sees it.
    * ``user_namespace``: False only for root where the machine forbids user namespaces.
    * ``own_network``: no network but loopback, and that its own.
    * ``processes``: the most processes and threads; None for no limit of their own.
    * ``control_groups``: the files ``cgroup.procs`` of the groups that it belongs to.
    """

    base: Path
    directory: Path
    mounts: tuple[Mount, ...]
    user_namespace: bool = True
    own_network: bool = False
    processes: int | None = None
    control_groups: tuple[Path, ...] = ()


class IsolationFailed(OSError):
    """The kernel refused a step. ``step``: what was tried."""

    def __init__(self, step: str, number: int) -> None:
        super().__init__(number, os.strerror(number))
        self.step = step

    def __str__(self) -> str:
        return f"cannot {self.step}: {self.strerror}"


class Launcher:
    """Starts programs. It keeps one process of the launcher waiting: to start Python takes longer
    than all that the launcher does then."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: _Process | None = None

    def prepare(self) -> None:
        """Lets a process wait, if none does. Raises OSError."""
        with self._lock:
            if self._waiting is None:
                self._waiting = _Process()

    def spawn(self, plan: Plan, arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> int:
        """Starts the program, and returns its pid when it runs: a child of this process, and a
        session leader. Its output is appended to ``log``. Raises IsolationFailed.

        The launcher, which is outside of the namespaces, gets none of the environment: a variable
        like LD_PRELOAD would bring a model's code there.
        """
        told = {
            "arguments": list(arguments),
            "environment": dict(environment),
            "log": str(log),
            "base": str(plan.base),
            "directory": str(plan.directory),
            "mounts": list(plan.mounts),
            "user_namespace": plan.user_namespace,
            "own_network": plan.own_network,
            "processes": plan.processes,
            "control_groups": [str(path) for path in plan.control_groups],
        }
        with self._lock:
            process, self._waiting = self._waiting, None
        if process is not None and not process.waits():
            process.close()
            process = None
        process = process or _Process()
        answer = process.tell(told)
        if "step" in answer:
            if "pid" in answer:
                os.waitpid(answer["pid"], 0)
            raise IsolationFailed(answer["step"], answer["errno"])
        if "pid" not in answer:
            raise IsolationFailed(f"start the launcher (exit code {process.exit_code})", errno.EIO)
        return int(answer["pid"])

    def close(self) -> None:
        with self._lock:
            if self._waiting is not None:
                self._waiting.close()
            self._waiting = None


class _Process:
    """One process of the launcher, which ends after one program, or with its standard input."""

    def __init__(self) -> None:
        self._answers, write = os.pipe()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", launcher.__file__, str(write)],
                env={},
                cwd="/",
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                pass_fds=(write,),
                start_new_session=True,
            )
        except BaseException:
            os.close(self._answers)
            raise
        finally:
            os.close(write)

    @property
    def exit_code(self) -> int | None:
        return self._process.returncode

    def waits(self) -> bool:
        return self._process.poll() is None

    def tell(self, what: dict[str, Any]) -> dict[str, Any]:
        """Its answers, when it has ended."""
        with open(self._answers, "rb") as answers:
            self._end(marshal.dumps(what))
            said = [json.loads(line) for line in answers]
        self._process.wait()
        return {name: value for one in said for name, value in one.items()}

    def close(self) -> None:
        self._end(b"")
        os.close(self._answers)
        self._process.wait()

    def _end(self, text: bytes) -> None:
        assert self._process.stdin is not None
        # If it has ended already, it has said why.
        with suppress(BrokenPipeError):
            self._process.stdin.write(text)
        with suppress(BrokenPipeError):
            self._process.stdin.close()
