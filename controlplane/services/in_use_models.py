"""Which models are in use, and by whom.

Decides that a deployment and an instance each use a model. An instance may still serve the model
that its deployment had before. Must not know what happens to other models.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from amphitrite.controlplane.core.desired.resources import ModelReference
from amphitrite.controlplane.runtimes.runtime import Runtime
from amphitrite.controlplane.store.state.store import Store
from amphitrite.schemas.names import key


@dataclass(frozen=True, slots=True)
class Uses:
    """``digests``: the manifests' digests of all models in use. ``workloads``: (name, digest) of
    the workloads that use them. ``without_end``: digests of models of instances whose grant has no
    end."""

    digests: frozenset[str]
    workloads: frozenset[tuple[str, str]]
    without_end: frozenset[str]


def uses(store: Store, runtime: Runtime) -> Uses:
    """Raises what the store and the runtime raise."""
    observed = runtime.observe()
    workloads = [deployment.workload for deployment in store.load_world().deployments]
    workloads += [instance.workload for instance in observed]
    return Uses(
        frozenset(workload.model.digest for workload in workloads),
        frozenset((workload.name, workload.model.digest) for workload in workloads),
        frozenset(instance.workload.model.digest for instance in observed if not instance.grant_ends),
    )


def digests_in_use(store: Store, runtime: Runtime) -> frozenset[str]:
    """The manifests' digests of all models in use. Raises what the store and the runtime raise."""
    return frozenset(model.digest for model, _ in _uses(store, runtime))


def versions_in_use(store: Store, runtime: Runtime) -> Mapping[tuple[str, str], tuple[str, ...]]:
    """(name in lower case, version) -> the deployments that use it, as ``endpoint/deployment`` in
    lower case. Raises as ``digests_in_use``."""
    users: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for model, user in _uses(store, runtime):
        users[key(model.name), model.version][user] = None
    return {version: tuple(sorted(names)) for version, names in users.items()}


def _uses(store: Store, runtime: Runtime) -> Iterator[tuple[ModelReference, str]]:
    workloads = [deployment.workload for deployment in store.load_world().deployments]
    for workload in (*workloads, *(instance.workload for instance in runtime.observe())):
        yield workload.model, f"{workload.endpoint}/{workload.deployment}"
