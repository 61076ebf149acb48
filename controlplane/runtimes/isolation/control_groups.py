"""Control groups of instances: their memory, processes and shares of the cores, held by the kernel.

Decides where this process may create groups, of version 2 or 1, and what is written there. Must not
know instance types. All groups of a server are in one group of its own. That counts as much as a
busy program for each core of the machine, and each instance in it by its cores: shares, not limits,
as for pods, since a limit delays answers while other cores idle. Sources: the kernel's documents
"Control Group v2" and "CGROUPS" (v1), cgroups(7).
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_MEMORY, _PROCESSES, _CORES = "memory", "pids", "cpu"
_KINDS = (_MEMORY, _PROCESSES, _CORES)


@dataclass(frozen=True, slots=True)
class Limits:
    """``processes``: with threads."""

    memory_bytes: int
    cores: int
    processes: int


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """A directory in which groups can be made. ``kinds``: the controllers that they have there."""

    directory: Path
    version: int
    kinds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ControlGroups:
    """Those of one server. ``hierarchies``: empty where this process may not create any."""

    name: str
    hierarchies: tuple[Hierarchy, ...]

    @property
    def limit_memory(self) -> bool:
        """Whether those that are made here do."""
        return any(_MEMORY in one.kinds for one in self.hierarchies)

    def limits_memory_of(self, instance: str) -> bool:
        """Whether this instance is in a group that does."""
        return any(_MEMORY in one.kinds and self._group(one, instance).is_dir() for one in self.hierarchies)

    def create(self, instance: str, limits: Limits) -> tuple[Path, ...]:
        """Makes the groups of an instance. Returns the files that a process writes its pid to, to
        join. Raises OSError."""
        for hierarchy in self.hierarchies:
            parent, group = hierarchy.directory / self.name, self._group(hierarchy, instance)
            parent.mkdir(exist_ok=True)
            for file, text in _share(hierarchy, os.cpu_count() or 1):
                _write(parent / file, text)
            if hierarchy.version == 2:
                _write(parent / "cgroup.subtree_control", " ".join(f"+{kind}" for kind in hierarchy.kinds))
            group.mkdir(exist_ok=True)
            for file, text in _settings(hierarchy, limits):
                _write(group / file, text)
        return tuple(self._group(one, instance) / "cgroup.procs" for one in self.hierarchies)

    def out_of_memory(self, instance: str) -> bool:
        """Whether the kernel has killed a process of the instance for its limit of memory."""
        for one in self.hierarchies:
            if _MEMORY in one.kinds:
                file = "memory.events" if one.version == 2 else "memory.oom_control"
                with suppress(OSError):
                    lines = (self._group(one, instance) / file).read_text(encoding="ascii").splitlines()
                    return any(line.startswith("oom_kill ") and line.split()[1] != "0" for line in lines)
        return False

    def remove(self, instance: str) -> None:
        """No process is left in them; a group that still has one stays."""
        for one in self.hierarchies:
            with suppress(OSError):
                self._group(one, instance).rmdir()

    def remove_all(self, needed: Collection[str] = ()) -> None:
        """The groups of instances that are not ``needed``, and with none left the server's."""
        for one in self.hierarchies:
            parent = one.directory / self.name
            with suppress(OSError):
                for path in [path for path in parent.iterdir() if path.is_dir() and path.name not in needed]:
                    with suppress(OSError):
                        path.rmdir()
                parent.rmdir()

    def _group(self, hierarchy: Hierarchy, instance: str) -> Path:
        return hierarchy.directory / self.name / instance


def join(files: Iterable[Path], pid: int) -> None:
    """For a process that is started already: what it has started itself stays where it is. Raises
    OSError."""
    for file in files:
        _write(file, str(pid))


def find(name: str, proc: Path = Path("/proc/self")) -> ControlGroups:
    """The places where this process may create groups: beside its own in version 2, in it in
    version 1."""
    try:
        mounts = (proc / "mountinfo").read_text(encoding="utf-8").splitlines()
        own = (proc / "cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ControlGroups(name, ())
    return ControlGroups(name, tuple(_hierarchies(mounts, own)))


def _hierarchies(mounts: list[str], own: list[str]) -> Iterator[Hierarchy]:
    """``mounts``: lines of mountinfo(5). ``own``: ``number:controllers:path`` (cgroups(7))."""
    paths = {controllers: path for _, controllers, path in (line.split(":", 2) for line in own)}
    missing = list(_KINDS)
    for line in mounts:
        before, _, after = line.partition(" - ")
        root, place = before.split(" ")[3:5]
        filesystem = after.split(" ")[0]
        if filesystem == "cgroup2" and "" in paths:
            own_group = _within(place, root, paths[""])
            directory = own_group.parent if own_group != Path(place) else own_group
            kinds, version = _kinds_of_version_2(directory), 2
        elif filesystem == "cgroup":
            options = set(after.split(" ")[2].split(","))
            mine = next((name for name in paths if name and set(name.split(",")) <= options), None)
            if mine is None:
                continue
            directory, version = _within(place, root, paths[mine]), 1
            kinds = tuple(kind for kind in missing if kind in mine.split(","))
        else:
            continue
        kinds = tuple(kind for kind in kinds if kind in missing)
        if kinds and _may_create(directory):
            missing = [kind for kind in missing if kind not in kinds]
            yield Hierarchy(directory, version, kinds)


def _within(place: str, root: str, path: str) -> Path:
    """Where the group ``path`` is, if ``root`` of its hierarchy is mounted at ``place``."""
    inside = os.path.relpath(path, root) if (path + "/").startswith(root.rstrip("/") + "/") else "."
    return Path(os.path.normpath(os.path.join(place, inside)))


def _kinds_of_version_2(directory: Path) -> tuple[str, ...]:
    """Those that the groups in ``directory`` have."""
    with suppress(OSError):
        enabled = (directory / "cgroup.subtree_control").read_text(encoding="ascii").split()
        return tuple(kind for kind in _KINDS if kind in enabled)
    return ()


def _may_create(directory: Path) -> bool:
    """To join a group, ``cgroup.procs`` of what contains both groups must be writable too."""
    return (
        os.access(directory, os.W_OK) and os.access(directory / "cgroup.procs", os.W_OK) and not _read_only(directory)
    )


def _read_only(directory: Path) -> bool:
    with suppress(OSError):
        return bool(os.statvfs(directory).f_flag & os.ST_RDONLY)
    return True


def _settings(hierarchy: Hierarchy, limits: Limits) -> Iterator[tuple[str, str]]:
    if _MEMORY in hierarchy.kinds and hierarchy.version == 2:
        yield "memory.max", str(limits.memory_bytes)
        yield "memory.oom.group", "1"
    elif _MEMORY in hierarchy.kinds:
        yield "memory.limit_in_bytes", str(limits.memory_bytes)
    if _PROCESSES in hierarchy.kinds:
        yield "pids.max", str(limits.processes)
    yield from _share(hierarchy, limits.cores)


def _share(hierarchy: Hierarchy, cores: int) -> Iterator[tuple[str, str]]:
    if _CORES in hierarchy.kinds and hierarchy.version == 2:
        yield "cpu.weight", str(min(10_000, 100 * cores))
    elif _CORES in hierarchy.kinds:
        yield "cpu.shares", str(min(262_144, 1024 * cores))


def _write(file: Path, text: str) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
