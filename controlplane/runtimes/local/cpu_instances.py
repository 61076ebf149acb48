"""Instances without a GPU whose model repository asks for one.

Decides whether an instance gets a repository of its own, in its directory, in which GPU groups are
served on the CPU, and the note that says so. Must not know Triton's configurations or processes.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from amphitrite.controlplane.core.desired import instance_types
from amphitrite.controlplane.core.desired.resources import WorkloadSpec
from amphitrite.controlplane.runtimes.local import engines
from amphitrite.dataplane.triton import cpu_configuration, cpu_repository

_REPOSITORY, _NOTE = "cpu-repository", "cpu-note"


def prepare(instance: Path, workload: WorkloadSpec, repository: Path) -> Path:
    """The repository for Triton: ``repository``, or one made of it below the directory
    ``instance``. Raises OSError."""
    why = _without_gpu(workload.instance_type)
    replaced = cpu_repository.configurations(repository) if why else ()
    (instance / _NOTE).unlink(missing_ok=True)
    if not why or not replaced:
        return repository
    (instance / _NOTE).write_text(cpu_configuration.note(replaced, why) or "", encoding="utf-8")
    return cpu_repository.lay_out(repository, instance / _REPOSITORY, replaced)


def note(instance: Path) -> str | None:
    """What a user should know of the repository that was prepared; None for nothing."""
    with suppress(FileNotFoundError):
        return (instance / _NOTE).read_text(encoding="utf-8") or None
    return None


def _without_gpu(instance_type: str) -> str | None:
    """Why an instance of this type has no GPU here; None: it has one."""
    if not engines.uses_gpus(instance_type):
        return f"{instance_types.find(instance_type).name} has no GPU"
    return None if engines.gpu_present() else "this machine has no GPU"
