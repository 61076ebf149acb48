"""The start of an instance that sees its own files and processes only.

Decides which of the server's files it sees: its model's, Triton's backends, and two directories of
its own to write to: for its sockets, and for anything. Must not know how isolation is done.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from amphitrite.controlplane.core.desired import instance_types
from amphitrite.controlplane.runtimes.isolation import view
from amphitrite.controlplane.runtimes.isolation.launch import Launcher, Plan
from amphitrite.controlplane.runtimes.isolation.support import Isolation
from amphitrite.controlplane.runtimes.isolation.view import View
from amphitrite.controlplane.runtimes.local import engines, instance_logs
from amphitrite.controlplane.runtimes.local.instance_limits import processes_max
from amphitrite.dataplane.machine import processes
from amphitrite.dataplane.machine.processes import ProcessRecord
from amphitrite.dataplane.triton.installation import Installation

_SCRATCH, _TEMPORARY, _NOTE = "scratch", "/tmp", "isolation-note"
#: The share of the instance type's memory that /tmp, and /dev/shm, may take.
_TEMPORARY_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What differs between machines. ``hidden``: the server's directories besides its home.
    ``read``, ``write``: those of the machine that every instance sees. ``own_network``: instances
    reach nothing but themselves."""

    hidden: tuple[Path, ...] = ()
    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()
    own_network: bool = False


NOTHING_MORE = Surroundings()


@dataclass(frozen=True, slots=True)
class Place:
    """``instance``: its directory. ``read_only``: what it sees of ``home``. ``sockets``: the
    directory in which it listens."""

    home: Path
    instance: Path
    instance_type: str
    triton: Installation
    read_only: tuple[Path, ...]
    sockets: Path


def variables(machine: Mapping[str, str], instance: Path) -> dict[str, str]:
    """The machine's variables, with directories that the instance has."""
    return {**machine, "HOME": str(instance / _SCRATCH), "TMPDIR": _TEMPORARY}


def write_note(instance: Path, isolation: Isolation) -> None:
    """For the next control plane too. Raises OSError."""
    (instance / _NOTE).write_text(isolation.note or "", encoding="utf-8")


def read_note(instance: Path) -> str | None:
    """What a user should know of the instance's isolation; None for nothing."""
    with suppress(FileNotFoundError):
        return (instance / _NOTE).read_text(encoding="utf-8") or None
    return None


def spawn(
    launcher: Launcher,
    isolation: Isolation,
    around: Surroundings,
    place: Place,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    groups: tuple[Path, ...] = (),
) -> ProcessRecord:
    """``groups``: see ``InstanceLimits.create``. Raises OSError."""
    scratch = place.instance / _SCRATCH
    scratch.mkdir(mode=0o700, exist_ok=True)
    shown = View(
        hidden=(place.home, *around.hidden),
        read_only=place.read_only,
        read_write=(scratch, place.sockets),
        temporary_bytes=int(instance_types.find(place.instance_type).memory_gib * _TEMPORARY_SHARE * 1024**3),
        gpus=engines.uses_gpus(place.instance_type),
        extra=(*view.of_triton(place.triton), *around.read),
        extra_write=around.write,
    )
    plan = Plan(
        place.instance,
        scratch,
        tuple(view.mounts(shown)),
        user_namespace=isolation.user_namespace,
        own_network=around.own_network,
        # Without a user namespace, and in older kernels, it would count all processes of the user.
        processes=processes_max() if isolation.user_namespace and _counts_by_namespace() else None,
        control_groups=groups,
    )
    return processes.of(launcher.spawn(plan, arguments, environment, place.instance / instance_logs.FILE))


def _counts_by_namespace() -> bool:
    """Whether RLIMIT_NPROC counts the processes of a user namespace, as from Linux 5.14 on."""
    version = os.uname().release.split(".")
    return (int(version[0]), int("".join(filter(str.isdigit, version[1])) or 0)) >= (5, 14)
