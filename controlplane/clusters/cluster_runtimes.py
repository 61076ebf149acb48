"""The runtimes of all clusters: the built-in one, and those that users have attached.

Decides which runtimes exist, from the stored computes. Each control plane reads them itself, so
every replica knows a cluster attached at one of them. Must not know pods (``runtimes.kubernetes``)
or plans.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable

from amphitrite.controlplane.core.desired import instance_types
from amphitrite.controlplane.core.desired.compute_clusters import Compute, PodShape
from amphitrite.controlplane.runtimes.composite import CompositeRuntime
from amphitrite.controlplane.runtimes.runtime import Runtime
from amphitrite.controlplane.runtimes.unreachable import UnreachableRuntime
from amphitrite.schemas.errors import Error

log = logging.getLogger(__name__)

#: Constructs the runtime of a compute. The second argument gives an instance type by its name.
RuntimeFactory = Callable[[Compute, Callable[[str], PodShape]], Runtime]


class Clusters:
    """Keeps one runtime for each cluster in ``composite``.

    ``built_in``: the compute of the settings; None on one machine. ``stored``: the attached
    computes. ``make`` raises Error for a cluster that cannot be used.
    """

    def __init__(
        self,
        composite: CompositeRuntime,
        built_in: Compute | None,
        stored: Callable[[], Iterable[Compute]],
        make: RuntimeFactory,
    ) -> None:
        self._composite, self._built_in, self._stored, self._make = composite, built_in, stored, make
        self._lock = threading.Lock()
        self._computes: dict[str, Compute] = {}
        self._runtimes: dict[str, Runtime] = {}
        self._failed: dict[str, str] = {}

    def refresh(self) -> None:
        """Adds and removes runtimes, so that each cluster has one. Raises what ``stored``
        raises."""
        wanted = {compute.name: compute for compute in self._stored()}
        if self._built_in is not None:
            wanted[self._built_in.name] = self._built_in
        with self._lock:
            for name in self._runtimes.keys() - wanted.keys():
                log.info("compute %s was detached", name)
                self._composite.remove(name)
                del self._runtimes[name], self._computes[name]
            for name in self._failed.keys() - wanted.keys():
                self._composite.remove(name)
                del self._failed[name]
            for name, compute in wanted.items():
                self._update(name, compute)

    def _update(self, name: str, compute: Compute) -> None:
        known = self._computes.get(name)
        self._computes[name] = compute  # New instance types apply even if the runtime stays.
        if name in self._runtimes and known is not None and _place(known) == _place(compute):
            return
        try:
            runtime = self._make(compute, lambda wanted: instance_types.shape(wanted, self._computes[name]))
        except Error as error:
            if self._failed.get(name) != error.message:
                log.warning("compute %s cannot be used: %s", name, error.message)
                if name not in self._runtimes:  # Its instances are unknown, not gone.
                    self._composite.add(name, UnreachableRuntime(name, error))
            self._failed[name] = error.message
            self._computes[name] = known or compute
            return
        self._failed.pop(name, None)
        self._runtimes[name] = runtime
        self._composite.add(name, runtime)


def _place(compute: Compute) -> tuple[str, str | None]:
    """The namespace and kubeconfig. If they change, the compute needs a new runtime."""
    return compute.namespace, None if compute.kubeconfig is None else compute.kubeconfig.reveal()
