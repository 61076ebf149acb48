"""Which models are in use.

Decides that a deployment and an instance each use a model. An instance may still serve the model
that its deployment had before. Must not know what happens to other models.
"""

from __future__ import annotations

from amphitrite.controlplane.runtimes.runtime import Runtime
from amphitrite.controlplane.store.state.store import Store


def digests_in_use(store: Store, runtime: Runtime) -> frozenset[str]:
    """The manifests' digests of all models in use. Raises what the store and the runtime raise."""
    desired = {deployment.workload.model.digest for deployment in store.load_world().deployments}
    return frozenset(desired | {instance.workload.model.digest for instance in runtime.observe()})
