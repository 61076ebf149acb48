"""The requests that are held, and when each of them goes on.

Decides how many may wait for a deployment, how long, and in which steps they are let go: when the
routing table in force no longer holds them and as many as there is room for on healthy instances.
All at once would be more than a connection's backlog and the deployment's limit take. A request
that the table answers by itself, for one of a paused deployment, goes on at once. Must not know
gRPC, nor how a request is held.

Everything here belongs to one event loop, except where it says otherwise.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from amphitrite.dataplane.envoy.process.admin_client import Host
from amphitrite.dataplane.envoy.translate.clusters import grpc_name
from amphitrite.dataplane.envoy.translate.held_requests import HOLD_CLUSTER
from amphitrite.dataplane.machine.json_log import log
from amphitrite.dataplane.table.routing_table import Cluster, RoutingTable, Target
from amphitrite.schemas.errors import Error

#: A deployment, as (endpoint, deployment): the names of its route and its target.
Deployment = tuple[str, str]

#: How many requests one proxy holds for one deployment, and for all of them.
HELD_PER_DEPLOYMENT, HELD_PER_PROXY = 500, 2_000
#: Envoy ends a request that has not gone on after 300 seconds (``request_timeout``).
HELD_AT_MOST_S = 290.0
#: How many requests are let go at once, and how long later the next ones.
_STEP, _STEP_S = 32, 0.005
#: So many places of a deployment stay free meanwhile, and at most an eighth of them.
_RESERVED = 4
_HEALTH_POLL_S = 0.02
#: An instance that Envoy has not found healthy after so long is asked nevertheless.
_HEALTHY_WITHIN_S = 10.0
#: After so long nobody who was admitted is still on the way.
_ON_THE_WAY_S = 10.0
#: How long routes wait for that at most.
_CLOSED_WITHIN_S = 1.0


@dataclass(frozen=True, slots=True)
class Admitted:
    """The request goes on. ``held_s``: how long it was held. ``left_s``: what is left of its
    time."""

    held_s: float
    left_s: float


@dataclass(frozen=True, slots=True)
class Refused:
    """``status``: 408 or 503. ``message``: for the client."""

    status: int
    message: str


@dataclass(slots=True)
class _Room:
    """The requests of one deployment, in the order of their arrival. ``open_since``: when the table
    let them go on, on the monotonic clock; None: it holds them."""

    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)
    open_since: float | None = None


class WaitingRoom:
    """``hosts``: the state of clusters in Envoy (``AdminClient.hosts``); it blocks. ``on_first``:
    called for the first request that is held for a deployment, in the loop's thread."""

    def __init__(
        self,
        hosts: Callable[[Collection[str]], Mapping[str, Collection[Host]]],
        on_first: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._letting_go: asyncio.Task[None] | None = None
        self._hosts, self._on_first, self._clock = hosts, on_first, clock
        self._rooms: dict[Deployment, _Room] = {}
        self._table: RoutingTable | None = None
        self._targets: dict[Deployment, Target] = {}
        self._clusters: dict[str, Cluster] = {}
        self._changed = asyncio.Event()
        self._closing: frozenset[Deployment] = frozenset()
        self._admitted: dict[Deployment, float] = {}  #: when somebody was, on the monotonic clock
        self._held = 0
        self._counts: Mapping[Deployment, int] = {}

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Called in the loop's thread, before the first request."""
        self._loop = loop
        self._letting_go = loop.create_task(self._run())

    def held(self) -> Mapping[Deployment, int]:
        """How many requests are held, by deployment; those with none are left out. May be called
        from any thread."""
        return self._counts

    def in_force(self, table: RoutingTable) -> None:
        """This table is in force in Envoy. May be called from any thread."""
        if self._loop is not None and self._loop.is_running():
            self._loop.call_soon_threadsafe(self._apply, table)

    def close(self, table: RoutingTable) -> None:
        """Admit nobody to the deployments that this table holds. Call it from another thread,
        before Envoy gets its routes: a request that was admitted must find the routes before."""
        names = {(route.name, t.name) for route in table.routes for t in route.targets if t.hold == "now"}
        if names and self._loop is not None and self._loop.is_running():
            asyncio.run_coroutine_threadsafe(self._close(names), self._loop).result(2 * _CLOSED_WITHIN_S)

    async def _close(self, deployments: Collection[Deployment]) -> None:
        self._closing = frozenset(deployments)
        for name in self._closing & self._rooms.keys():
            self._rooms[name].open_since = None
        end = time.monotonic() + _CLOSED_WITHIN_S
        self._admitted = {name: at for name, at in self._admitted.items() if end - at < _ON_THE_WAY_S}
        while self._admitted.keys() & self._closing and time.monotonic() < end:
            with contextlib.suppress(Error):  # Envoy does not answer: nobody is on the way.
                if await self._on_the_way() > 0:
                    await asyncio.sleep(_STEP_S)
                    continue
            return

    async def wait(self, deployment: Deployment, arrived: float, timeout_s: float) -> Admitted | Refused:
        """Until the request may go on, or must be answered.

        ``arrived``: when the client sent it, in seconds since the epoch. ``timeout_s``: of the
        deployment. A caller that is cancelled is forgotten.
        """
        # A clock that was set back must not make a request wait for longer.
        arrived = min(arrived, self._clock())
        left = min(timeout_s, HELD_AT_MOST_S) - (self._clock() - arrived)
        room = self._rooms.setdefault(deployment, _Room(open_since=self._open_since(deployment)))
        if len(room.waiting) >= HELD_PER_DEPLOYMENT or self._held >= HELD_PER_PROXY:
            return Refused(503, _full(deployment, len(room.waiting), self._held))
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        room.waiting.append(turn)
        self._count(1)
        if len(room.waiting) == 1:
            self._on_first()
        self._changed.set()
        try:
            await asyncio.wait_for(turn, max(left, 0.0))
        except asyncio.TimeoutError:
            return Refused(408, _late(deployment, timeout_s))
        finally:
            if turn in room.waiting:
                room.waiting.remove(turn)
            self._count(-1)
            if not room.waiting:
                self._rooms.pop(deployment, None)
        held = self._clock() - arrived
        return Admitted(held, max(timeout_s - held, 0.001))

    async def _run(self) -> None:
        """Lets requests go, for ever."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            while any(room.waiting and room.open_since is not None for room in self._rooms.values()):
                try:
                    pause = await self._step()
                except Exception as exc:  # The requests that wait must not wait for ever.
                    log("error", "held requests cannot be let go", error=repr(exc))
                    pause = _HEALTH_POLL_S
                await asyncio.sleep(pause)

    async def _step(self) -> float:
        """Lets as many go as there is room for. Returns the seconds until the next step."""
        served: dict[Deployment, Cluster] = {}
        for deployment, room in list(self._rooms.items()):
            if room.open_since is None:
                continue
            cluster = self._cluster(deployment)
            if cluster is None:  # The routes answer by themselves.
                self._let_go(deployment, room, len(room.waiting))
            else:
                served[deployment] = cluster
        if not served:
            return 0.0
        names = {name for c in served.values() for name in (c.name, grpc_name(c.name))}
        try:
            # In this order: whoever arrives in between counts twice, and nobody is overlooked.
            on_the_way = await self._on_the_way()
            hosts = await asyncio.to_thread(self._hosts, names)
        except Error:
            return _HEALTH_POLL_S  # Envoy does not answer. It may be starting.
        now, pause = time.monotonic(), _STEP_S
        for deployment, cluster in served.items():
            held_room = self._rooms.get(deployment)
            if held_room is None or held_room.open_since is None:
                continue
            both = [host for name in (cluster.name, grpc_name(cluster.name)) for host in hosts.get(name, ())]
            waited = now - held_room.open_since
            if not any(h.healthy for h in hosts.get(cluster.name, ())) and waited < _HEALTHY_WITHIN_S:
                pause = _HEALTH_POLL_S
                continue
            # Envoy's numbers are not of one moment: a request between two of them counts nowhere.
            limit = cluster.max_requests - min(_RESERVED, cluster.max_requests // 8)
            free = max(limit - on_the_way - sum(h.active for h in both), 0)
            self._let_go(deployment, held_room, min(_STEP, free))
        return pause

    async def _on_the_way(self) -> int:
        """At most how many are held in Envoy and not here: they were admitted, and are not in
        flight yet. Raises Error when Envoy does not answer."""
        # Without those who were let go a moment ago, whose calls still wait for the loop.
        here = sum(len(room.waiting) for room in self._rooms.values())
        hosts = await asyncio.to_thread(self._hosts, {HOLD_CLUSTER})
        return max(sum(host.active for host in hosts.get(HOLD_CLUSTER, ())) - here, 0)

    def _let_go(self, deployment: Deployment, room: _Room, number: int) -> None:
        while number > 0 and room.waiting:
            turn = room.waiting.popleft()
            if not turn.done():
                self._admitted[deployment] = time.monotonic()
                turn.set_result(None)
                number -= 1

    def _apply(self, table: RoutingTable) -> None:
        self._table, self._closing = table, frozenset()
        self._targets = {(route.name, target.name): target for route in table.routes for target in route.targets}
        self._clusters = {cluster.name: cluster for cluster in table.clusters}
        for deployment, room in self._rooms.items():
            opened = self._open_since(deployment)
            room.open_since = None if opened is None else room.open_since or opened
        self._changed.set()

    def _open_since(self, deployment: Deployment) -> float | None:
        """Now, if the table in force lets its requests go on."""
        if self._table is None or deployment in self._closing:
            return None
        target = self._targets.get(deployment)
        return None if target is not None and target.hold == "now" else time.monotonic()

    def _cluster(self, deployment: Deployment) -> Cluster | None:
        target = self._targets.get(deployment)
        return self._clusters.get(target.cluster or "") if target is not None else None

    def _count(self, change: int) -> None:
        self._held += change
        self._counts = {name: len(room.waiting) for name, room in self._rooms.items() if room.waiting}


def _full(deployment: Deployment, waiting: int, held: int) -> str:
    where = (
        f"{waiting} requests wait for it at this proxy"
        if waiting >= HELD_PER_DEPLOYMENT
        else f"{held} requests wait at this proxy"
    )
    return f"deployment '{deployment[1]}' is waking up, and {where}, which is the limit"


def _late(deployment: Deployment, timeout_s: float) -> str:
    limit = min(timeout_s, HELD_AT_MOST_S) * 1000
    return (
        f"deployment '{deployment[1]}' was asleep and could not answer within {limit:g} ms "
        "(request_settings.request_timeout_ms); it goes on waking up"
    )
