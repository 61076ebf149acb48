"""What an Envoy is started with: its command line, its file, and the name that both it and we know this start by.

Decides what tells one start from another. Must not know which processes run.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amphitrite.dataplane.envoy.process.hot_restart import MARKER_VARIABLE, HotRestart
from amphitrite.dataplane.envoy.process.log_output import LogOutput
from amphitrite.dataplane.machine import processes
from amphitrite.dataplane.machine.processes import ProcessRecord
from amphitrite.dataplane.table.routing_table import Address

#: In the metadata of the node as which an Envoy presents itself: the name of its launch.
LAUNCH_KEY = "launch"

#: With hot restart Envoy asks the kernel for SIGTERM as soon as the thread ends whose child it is. It shall outlive the
#: agent, and the machine's first process may have many threads that come and go: so it gets a parent of its own, which
#: has one thread and nothing to do but to wait, and passes on its exit code. The descriptor is for Envoy's pid.
_PARENT_PROGRAM = """
import os, signal, sys
told = int(sys.argv[1])
child = os.fork()
if not child:
    os.close(told)
    os.execv(sys.argv[2], sys.argv[2:])
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
os.write(told, str(child).encode())
nothing = os.open(os.devnull, os.O_RDWR)
for held in (told, 1, 2):
    os.dup2(nothing, held)
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 255)
"""


@dataclass(frozen=True, slots=True)
class Launch:
    """``version``: the build, in its own words; ``record``: the file that says which process runs; ``output``: where
    Envoy's own log goes; ``hot_restart``: None where no Envoy may follow another on the port."""

    executable: Path
    version: str
    bootstrap: Mapping[str, Any]
    bootstrap_file: Path
    record: Path
    output: LogOutput
    listen: Address
    workers: int
    hot_restart: HotRestart | None = None

    @property
    def digest(self) -> str:
        """Tells an Envoy that was started with the same settings from one that was not."""
        content = json.dumps([self.version, self.bootstrap], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def id(self, epoch: int) -> str:
        return f"{self.digest}.{epoch if self.hot_restart else ''}"

    def bootstrap_text(self, epoch: int) -> str:
        """The content of ``bootstrap_file``."""
        node = {**self.bootstrap["node"], "metadata": {LAUNCH_KEY: self.id(epoch)}}
        return json.dumps({**self.bootstrap, "node": node}, indent=1)

    def command(self, epoch: int, parent_shutdown_s: float) -> list[str]:
        hot = self.hot_restart
        return [
            str(self.executable), "--config-path", str(self.bootstrap_file),
            *(hot.arguments(epoch, parent_shutdown_s) if hot else ["--disable-hot-restart"]),
            "--concurrency", str(self.workers), *self.output.arguments, "--log-level", "info",
            # A refused resource is logged by the agent, which leaves out what is secret in it.
            "--component-log-level", "config:error,upstream:warn",
            "--drain-time-s", "5", "--drain-strategy", "immediate", "--file-flush-interval-msec", "1000",
        ]  # fmt: skip

    def start(self, epoch: int, parent_shutdown_s: float) -> tuple[ProcessRecord, subprocess.Popen[bytes]]:
        """Envoy's process, and our child: itself, or the one that waits for it and ends as it ends. Raises
        ProcessLookupError when it has ended already."""
        command, environment = self.command(epoch, parent_shutdown_s), {MARKER_VARIABLE: self.id(epoch)}
        if self.hot_restart is None:
            child = self.output.start(command, environment)
            return processes.of(child.pid), child
        ours, theirs = os.pipe()
        try:
            parent = [sys.executable, "-I", "-S", "-c", _PARENT_PROGRAM, str(theirs), *command]
            child = self.output.start(parent, environment, (theirs,))
        finally:
            os.close(theirs)
        with open(ours, "rb") as told:
            pid = told.read()
        try:
            return processes.of(int(pid)), child
        except (ValueError, ProcessLookupError):
            child.wait()
            raise ProcessLookupError("Envoy ended at its start") from None
