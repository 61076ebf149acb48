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

from amphitrite.dataplane import processes
from amphitrite.dataplane.envoy_output import Output
from amphitrite.dataplane.processes import ProcessRecord
from amphitrite.dataplane.routing import Address
from amphitrite.dataplane.succession import MARKER, HotRestart

#: In the metadata of the node as which an Envoy presents itself: the name of its launch.
LAUNCH = "launch"

#: With hot restart Envoy asks the kernel for SIGTERM as soon as its parent ends. It shall outlive the agent, so it
#: begins only when its parent is the machine's first process. The descriptor is for its pid.
_DETACHED = """
import os, sys, time
told = int(sys.argv[1])
os.set_inheritable(told, False)
parent = os.getpid()
if child := os.fork():
    os.write(told, str(child).encode())
    os._exit(0)
os.setsid()
while os.getppid() == parent:
    time.sleep(0.001)
os.execv(sys.argv[2], sys.argv[2:])
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
    output: Output
    listen: Address
    workers: int
    hot_restart: HotRestart | None = None

    @property
    def digest(self) -> str:
        """Tells an Envoy that was started with the same settings from one that was not."""
        content = json.dumps([self.version, self.bootstrap], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def name(self, epoch: int) -> str:
        return f"{self.digest}.{epoch if self.hot_restart else ''}"

    def file(self, epoch: int) -> str:
        """The content of ``bootstrap_file``."""
        node = {**self.bootstrap["node"], "metadata": {LAUNCH: self.name(epoch)}}
        return json.dumps({**self.bootstrap, "node": node}, indent=1)

    def command(self, epoch: int, parent_ends_after_s: float) -> list[str]:
        hot = self.hot_restart
        return [
            str(self.executable), "--config-path", str(self.bootstrap_file),
            *(hot.arguments(epoch, parent_ends_after_s) if hot else ["--disable-hot-restart"]),
            "--concurrency", str(self.workers), *self.output.arguments, "--log-level", "info",
            # A refused resource is logged by the agent, which leaves out what is secret in it.
            "--component-log-level", "config:error,upstream:warn",
            "--drain-time-s", "5", "--drain-strategy", "immediate", "--file-flush-interval-msec", "1000",
        ]  # fmt: skip

    def start(self, epoch: int, parent_ends_after_s: float) -> tuple[ProcessRecord, subprocess.Popen[bytes] | None]:
        """The process, and itself where it is our child. Raises ProcessLookupError when it has ended already."""
        command, environment = self.command(epoch, parent_ends_after_s), {MARKER: self.name(epoch)}
        if self.hot_restart is None:
            child = self.output.start(command, environment)
            return processes.of(child.pid), child
        ours, theirs = os.pipe()
        try:
            launcher = [sys.executable, "-I", "-S", "-c", _DETACHED, str(theirs), *command]
            child = self.output.start(launcher, environment, (theirs,))
        finally:
            os.close(theirs)
        with open(ours, "rb") as told:
            pid = told.read()
        child.wait()
        if not pid:
            raise ProcessLookupError("Envoy's launcher ended without a word")
        return processes.of(int(pid)), None
