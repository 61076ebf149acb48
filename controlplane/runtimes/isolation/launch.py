"""The start of an isolated process, seen from the control plane.

Decides what the launcher is told, and what its answer means. Must not know what an instance sees.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

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


def spawn(
    plan: Plan, arguments: Sequence[str], environment: Mapping[str, str], log: int, *, marked: Mapping[str, str]
) -> int:
    """Starts the program, and returns its pid when it runs: a child of this process, and a session
    leader. Raises IsolationFailed.

    ``marked``: the environment of the launcher, which is outside of the namespaces. The program's
    own is none of it: a variable like LD_PRELOAD would bring a model's code there.
    """
    told = {
        "arguments": list(arguments),
        "environment": dict(environment),
        "base": str(plan.base),
        "directory": str(plan.directory),
        "mounts": list(plan.mounts),
        "user_namespace": plan.user_namespace,
        "own_network": plan.own_network,
        "processes": plan.processes,
        "control_groups": [str(path) for path in plan.control_groups],
    }
    report, write = os.pipe()
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", launcher.__file__, str(write)],
            env=dict(marked),
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            pass_fds=(write,),
            start_new_session=True,
        )
    except BaseException:
        os.close(report)
        raise
    finally:
        os.close(write)
    with process, open(report, "rb") as answers:
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(told).encode())
            process.stdin.close()
        except BrokenPipeError:
            pass  # It has ended, and has said why.
        said = [json.loads(line) for line in answers]
    answer = {name: value for one in said for name, value in one.items()}
    if "step" in answer:
        if "pid" in answer:
            os.waitpid(answer["pid"], 0)
        raise IsolationFailed(answer["step"], answer["errno"])
    if "pid" not in answer:
        raise IsolationFailed(f"start the launcher (exit code {process.returncode})", 5)
    return int(answer["pid"])
