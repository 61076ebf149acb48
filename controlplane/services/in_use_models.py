"""Which models somebody needs now.

Decides that deployments and instances are what needs one: an instance still serves what its deployment has just
left behind, and may be started once more. Must not know what is done with the others.
"""

from __future__ import annotations

from amphitrite.controlplane.runtimes.runtime import Runtime
from amphitrite.controlplane.store.state.store import Store


def digests_in_use(store: Store, runtime: Runtime) -> frozenset[str]:
    """Digests of their manifests. Raises what the store and the runtime raise."""
    desired = {deployment.workload.model.digest for deployment in store.load_world().deployments}
    return frozenset(desired | {instance.workload.model.digest for instance in runtime.observe()})
