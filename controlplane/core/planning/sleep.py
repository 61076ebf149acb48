"""Whether the requests of a deployment are held.

Decides it from the wanted number of instances, what lives, and the published table. Held requests
wait in the proxies until an instance can serve them. Must not know how a proxy holds them, nor who
decides on the number of instances.

Nothing here remembers a step. A deployment falls asleep because none of its instances is wanted:
its route holds requests and names no cluster. The instances go on until every proxy has that route
and has drained, as with any route that no longer names them (``plan``). It wakes because one is
wanted: its route changes when that one is ready, and each proxy first waits until it finds it
healthy.
"""

from __future__ import annotations

from collections.abc import Iterable

from amphitrite.controlplane.core.desired.resources import Deployment
from amphitrite.controlplane.core.observed.observations import Instance
from amphitrite.dataplane.table.routing_table import Hold, Target


def hold(deployment: Deployment, instances: Iterable[Instance], published: Target | None, *, failing: bool) -> Hold:
    """Whether to hold its requests.

    ``instances``: all of this deployment's. ``published``: its target in the published table.
    ``failing``: it does not become ready and only a change will help. Then requests are answered
    503, since waiting would not help them.
    """
    if deployment.pause is not None:
        return "never"
    if deployment.instance_count == 0:
        return "now"
    otherwise: Hold = "ready" if deployment.may_sleep else "never"
    if failing or published is None or any(_serves(i) for i in instances):
        return otherwise
    waking = published.hold == "now" or published.paused
    # One that may sleep also waits for the successor of an instance that was lost.
    lost = deployment.may_sleep and published.cluster is not None
    return "now" if waking or lost else otherwise


def _serves(instance: Instance) -> bool:
    return instance.phase in ("ready", "unready") and instance.live
