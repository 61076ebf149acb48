"""What an Envoy is started with: command line, bootstrap file, and the id of this launch.

Decides what distinguishes one launch from another. Must not know which processes run.
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

#: The key of the launch's id in the metadata of Envoy's node.
LAUNCH_KEY = "launch"

#: With hot restart, Envoy asks the kernel for SIGTERM as soon as the thread that started it ends.
#: It must outlive the agent, and the first process of a machine may have many threads that come and
#: go. So Envoy gets a parent process of its own, with one thread. That process only waits, and
#: passes on the exit code. The pipe's descriptor is for Envoy's pid.
_PARENT_PROGRAM = """
import os, signal, sys
pid_pipe = int(sys.argv[1])
child = os.fork()
if not child:
    os.close(pid_pipe)
    os.execv(sys.argv[2], sys.argv[2:])
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
os.write(pid_pipe, str(child).encode())
null = os.open(os.devnull, os.O_RDWR)
for descriptor in (pid_pipe, 1, 2):
    os.dup2(null, descriptor)
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 255)
"""


_LOG_LEVELS = (
    # The agent logs a rejected resource itself, without the secrets in it.
    "config:error",
    "upstream:warn",
    # That the agent does not answer would be a line for each request.
    "ext_proc:error",
    # What Envoy says of its start is a hundred lines on its extensions, and nothing to act on.
    "main:warn",
    "admin:warn",
    "runtime:warn",
    "lua:warn",
)


@dataclass(frozen=True, slots=True)
class Launch:
    """One way to start Envoy.

    - ``version``: the build, as ``envoy --version`` prints it.
    - ``record``: the file that says which process runs.
    - ``output``: where Envoy's own log goes.
    - ``workers``: the number of worker threads.
    - ``hot_restart``: None: no Envoy may replace another on the port.
    """

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
        """Sixteen hexadecimal digits that tell an Envoy with these settings from one with
        others."""
        content = json.dumps([self.version, self.bootstrap], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def id(self, epoch: int) -> str:
        return f"{self.digest}.{epoch if self.hot_restart else ''}"

    def bootstrap_text(self, epoch: int) -> str:
        """The content of ``bootstrap_file``: the bootstrap, with the id of the launch."""
        node = {**self.bootstrap["node"], "metadata": {LAUNCH_KEY: self.id(epoch)}}
        return json.dumps({**self.bootstrap, "node": node}, indent=1)

    def command(self, epoch: int, parent_shutdown_s: float) -> list[str]:
        hot = self.hot_restart
        return [
            str(self.executable), "--config-path", str(self.bootstrap_file),
            *(hot.arguments(epoch, parent_shutdown_s) if hot else ["--disable-hot-restart"]),
            "--concurrency", str(self.workers), *self.output.arguments, "--log-level", "info",
            "--component-log-level", ",".join(_LOG_LEVELS),
            "--drain-time-s", "5", "--drain-strategy", "immediate", "--file-flush-interval-msec", "1000",
        ]  # fmt: skip

    def start(self, epoch: int, parent_shutdown_s: float) -> tuple[ProcessRecord, subprocess.Popen[bytes]]:
        """Start Envoy: its process, and our child process. That is Envoy itself, or the process
        that waits for it and ends as it ends. Raises ProcessLookupError when Envoy has ended
        already."""
        command, environment = self.command(epoch, parent_shutdown_s), {MARKER_VARIABLE: self.id(epoch)}
        if self.hot_restart is None:
            child = self.output.start(command, environment)
            return processes.of(child.pid), child
        read_end, write_end = os.pipe()
        try:
            parent = [sys.executable, "-I", "-S", "-c", _PARENT_PROGRAM, str(write_end), *command]
            child = self.output.start(parent, environment, (write_end,))
        finally:
            os.close(write_end)
        with open(read_end, "rb") as reader:
            pid = reader.read()
        try:
            return processes.of(int(pid)), child
        except (ValueError, ProcessLookupError):
            child.wait()
            raise ProcessLookupError("Envoy ended at its start") from None
