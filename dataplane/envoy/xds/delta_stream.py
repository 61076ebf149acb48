"""One delta xDS stream, as the server sees it: subscriptions, sent and accepted resources.

Decides what goes into the next response. Must not know gRPC, protobuf or threads: it is a state
machine over values. Source: Envoy's page "xDS REST and gRPC protocol", section "Incremental xDS".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from amphitrite.dataplane.envoy.translate.resources import CLUSTER, ENDPOINTS, ROUTES, TYPES, Named, Resource

#: All resources that Envoy should have, by type and name. A mapping is never changed after it was
#: passed on, so what was compared with it once need not be compared again.
Snapshot = Mapping[str, Named]
#: The number of addresses or routes in one response, of those that Envoy subscribes to one by one.
#: Envoy needs ten times the size of a message with a thousand resources to take it in. Clusters
#: stay together: a starting Envoy waits for one response and takes it for all of them.
_RESOURCES_PER_RESPONSE = 50


@dataclass(frozen=True, slots=True)
class Request:
    """A ``DeltaDiscoveryRequest``. ``error`` is set when it rejects the response ``nonce``
    (NACK)."""

    type_url: str
    subscribe: tuple[str, ...] = ()
    unsubscribe: tuple[str, ...] = ()
    resource_versions: Mapping[str, str] = field(default_factory=dict)  #: initial_resource_versions
    nonce: str = ""
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Response:
    """A ``DeltaDiscoveryResponse``."""

    type_url: str
    nonce: str
    changed: tuple[tuple[str, Resource], ...]
    removed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rejection:
    """The client has rejected a response (NACK) and keeps what it had."""

    type_url: str
    names: tuple[str, ...]
    message: str


@dataclass(slots=True)
class _Subscription:
    """The state of one type on one stream.

    - ``sent``, ``accepted``: name -> version; a version of None stands for "there is no such
      resource".
    - ``sent_all``: the resources of which nothing is left to send.
    - ``accepted_all``: the resources that the client has accepted as a whole.
    """

    wildcard: bool = False
    answered: bool = False
    names: set[str] = field(default_factory=set)
    sent: dict[str, str | None] = field(default_factory=dict)
    accepted: dict[str, str] = field(default_factory=dict)
    unacknowledged: dict[str, dict[str, str | None]] = field(default_factory=dict)  #: by nonce
    sent_all: Named | None = None
    accepted_all: Named | None = None


class DeltaStream:
    """The state of one stream. Not thread-safe: whoever shares one locks."""

    def __init__(self) -> None:
        self._subscriptions: dict[str, _Subscription] = {}
        self._nonce = 0

    @property
    def empty(self) -> bool:
        """Whether the client has no resources, and has been sent none since it said so."""
        states = self._subscriptions.values()
        return bool(states) and not any(state.sent or state.answered for state in states)

    def receive(self, request: Request) -> Rejection | None:
        """Take in one request. Returns the rejection that it contains, if any."""
        first = request.type_url not in self._subscriptions
        state = self._subscriptions.setdefault(request.type_url, _Subscription())
        if first:
            # A first request without names subscribes to all resources of its type.
            state.wildcard = not request.subscribe
            state.sent.update(request.resource_versions)
            state.accepted.update(request.resource_versions)
        if first or request.subscribe or request.unsubscribe:
            state.sent_all = state.accepted_all = None
        for name in request.subscribe:
            if name == "*":
                state.wildcard = True
                continue
            state.names.add(name)
            if name not in request.resource_versions:
                state.sent.pop(name, None)
        for name in request.unsubscribe:
            if name == "*":
                state.wildcard = False
                continue
            state.names.discard(name)
            state.sent.pop(name, None)
            state.accepted.pop(name, None)
        return self._answer(state, request)

    def _answer(self, state: _Subscription, request: Request) -> Rejection | None:
        versions = state.unacknowledged.pop(request.nonce, None)
        if versions:
            state.accepted_all = None
        if request.error is not None:
            return Rejection(request.type_url, tuple(sorted(versions or ())), request.error)
        for name, version in (versions or {}).items():
            if version is None:
                state.accepted.pop(name, None)
            elif state.wildcard or name in state.names:
                state.accepted[name] = version
        return None

    def pending(self, snapshot: Snapshot) -> Iterator[Response]:
        """The responses that the client needs next, in the order of dependence. A response counts
        as sent once it is taken from the iterator."""
        for type_url in TYPES:
            state = self._subscriptions.get(type_url)
            if state is None:
                continue
            resources = snapshot.get(type_url, {})
            if state.sent_all is resources:
                continue
            expected = sorted({*resources, *state.names} if state.wildcard else state.names)
            changed = [
                (n, resources[n]) for n in expected if n in resources and state.sent.get(n) != resources[n].version
            ]
            removed = [n for n, version in state.sent.items() if version is not None and n not in resources]
            removed += [n for n in state.names if n not in resources and n not in state.sent]
            if not changed and not removed and (state.answered or not state.wildcard):
                state.sent_all = resources
                continue
            limit = _RESOURCES_PER_RESPONSE if type_url in (ENDPOINTS, ROUTES) else len(changed)
            while len(changed) > limit:
                yield self._response(type_url, state, changed[:limit], [])
                changed = changed[limit:]
            yield self._response(type_url, state, changed, removed)
            state.sent_all = resources

    def _response(
        self, type_url: str, state: _Subscription, changed: list[tuple[str, Resource]], removed: list[str]
    ) -> Response:
        state.answered = True
        versions: dict[str, str | None] = {name: resource.version for name, resource in changed}
        versions.update(dict.fromkeys(removed))
        state.sent.update(versions)
        self._nonce += 1
        nonce = str(self._nonce)
        state.unacknowledged[nonce] = versions
        if type_url == CLUSTER and ENDPOINTS in self._subscriptions:
            # A changed cluster starts anew in Envoy and waits for its addresses, even if those are
            # the same.
            for name in versions:
                self._subscriptions[ENDPOINTS].sent.pop(name, None)
            self._subscriptions[ENDPOINTS].sent_all = None
        return Response(type_url, nonce, tuple(changed), tuple(sorted(removed)))

    def in_force(self, snapshot: Snapshot, types: tuple[str, ...]) -> bool:
        """Whether the client has accepted exactly the resources of ``snapshot`` of these types."""
        for type_url in types:
            state = self._subscriptions.get(type_url, _Subscription())
            expected = snapshot.get(type_url, {})
            if state.unacknowledged:
                return False
            if state.accepted_all is expected:
                continue
            if state.accepted != {name: resource.version for name, resource in expected.items()}:
                return False
            state.accepted_all = expected
        return True
