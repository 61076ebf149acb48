"""The routing table: what the control plane tells every proxy, and all that a proxy needs.

Decides the form of routes, clusters and credentials, and that a table is consistent in itself. It
is the value between two translators: the planner makes it from resources, and each proxy's folder
makes a configuration from it. Must not know endpoints, deployments, databases, REST or that
configuration.

A table travels as JSON (``json_codec``) from the control plane to the agents and onto their disks.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

#: The most bytes of a body whose length is not announced, unless a table says otherwise. A proxy
#: holds such a body in memory until it is complete.
MAX_UNSIZED_BODY_BYTES = 16 * 1024 * 1024
#: A request header that opens the services by which a model server is controlled. It is no secret:
#: every proxy removes it, and who reaches the model server without a proxy owns it.
ADMIN_HEADER = "amphitrite-admin"
#: What a request to a route must show: one of its keys, a token of ours bound to it, or a token of
#: the OIDC issuer.
Auth = Literal["key", "aml_token", "aad_token"]
#: Whether a target's requests are held until its instances can serve. never: its routes know
#: nothing of holding. ready: they may be held by a later table. now: they are held.
Hold = Literal["never", "ready", "now"]


class Secret:
    """A string that does not print. Only :meth:`reveal` returns the text."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def fingerprint(self) -> str:
        """Distinguishes keys without revealing them: 16 hexadecimal digits of the SHA-256."""
        return hashlib.sha256(self._text.encode()).hexdigest()[:16]

    def __repr__(self) -> str:
        return "Secret(***)"

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __lt__(self, other: Secret) -> bool:
        return self._text < other._text


@dataclass(frozen=True, slots=True)
class Address:
    """Where one instance listens for HTTP and, unless ``grpc_port`` is None, for gRPC. Ordered by
    host and ports, before every :class:`SocketAddress`."""

    host: str
    port: int
    grpc_port: int | None = None

    @property
    def by_grpc(self) -> bool:
        """Whether the instance serves gRPC."""
        return self.grpc_port is not None

    def __lt__(self, other: InstanceAddress) -> bool:
        if isinstance(other, SocketAddress):
            return True
        return (self.host, self.port, self.grpc_port or 0) < (other.host, other.port, other.grpc_port or 0)


@dataclass(frozen=True, slots=True)
class SocketAddress:
    """The UNIX sockets on which one instance listens, on the proxy's own machine: for HTTP and,
    unless ``grpc_path`` is None, for gRPC. Absolute paths. Ordered by them."""

    path: str
    grpc_path: str | None = None

    @property
    def by_grpc(self) -> bool:
        """Whether the instance serves gRPC."""
        return self.grpc_path is not None

    def __lt__(self, other: InstanceAddress) -> bool:
        if isinstance(other, Address):
            return False
        return (self.path, self.grpc_path or "") < (other.path, other.grpc_path or "")


#: Instances of one cluster may have addresses of both kinds.
InstanceAddress: TypeAlias = Address | SocketAddress


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """The active health check of each address: HTTP GET of ``path``. Seconds and counts as in the
    deployment's probe."""

    path: str = "/v2/health/ready"
    interval_s: float = 2.0
    timeout_s: float = 5.0
    healthy_threshold: int = 1
    unhealthy_threshold: int = 2


@dataclass(frozen=True, slots=True)
class Cluster:
    """Interchangeable instances.

    - ``max_requests``: the limit on requests in flight over all addresses. The next one is answered
      429. Each proxy has this limit.
    - ``drain_timeout_s``: how long requests in flight may take to finish once no route names the
      cluster, in seconds.
    - ``sequences``: the model server keeps state between the requests of one sequence, so these
      stay on one instance.
    - ``queue``: requests above the limit wait for a place (``queue_wait_s`` of its target).
    """

    name: str
    addresses: tuple[InstanceAddress, ...]
    max_requests: int
    drain_timeout_s: float
    health_check: HealthCheck = HealthCheck()
    sequences: bool = False
    queue: bool = False

    @property
    def grpc(self) -> bool:
        """Whether the cluster serves gRPC. A cluster without an instance counts as one that
        does."""
        return not self.addresses or any(a.by_grpc for a in self.addresses)


@dataclass(frozen=True, slots=True)
class Target:
    """One destination of a route.

    - ``name``: a request with this name in its header ``azureml-model-deployment`` is pinned here.
      The response has it in the same header.
    - ``cluster``: None while nothing can serve. Then a request is answered 503, unless it is held.
    - ``timeout_s``: the most seconds for a response, or for a pause of a stream.
    - ``score_path``: the upstream path for a POST to the route's root. None when there is no single
      model (404, with ``score_reason`` in the body).
    - ``sequences``: as of its cluster.
    - ``number_ids``: its models take the ids of sequences as numbers, so a long text for one is
      refused.
    - ``queue_wait_s``: how long a request above its cluster's limit may wait for a place, in
      seconds. 0: it is refused at once. Requests by HTTP and gRPC then share one limit.
    - ``retry_lost``: a request whose instance is lost before the response runs again on another
      one, though it may have run. If false, only a request that certainly did not run is repeated.
    - ``container``: a user's own server answers, and no Triton that we start. Any of its addresses
      may stream, and it gets content types as they are.
    - ``per_instance``: one instance's part of the cluster's limit, for messages.
    - ``sample_every_s``: how often the demand on it is sampled, in seconds; 0: never.
    - ``hold``: whether its requests are held; it has no cluster while they are. Mirrored requests
      never are.
    - ``paused``: nothing serves it because its owner has paused it. It has no cluster then.
    """

    name: str
    cluster: str | None
    timeout_s: float
    score_path: str | None = None
    score_reason: str = ""
    sequences: bool = False
    retry_lost: bool = False
    container: bool = False
    per_instance: int = 1
    number_ids: bool = False
    sample_every_s: float = 0.0
    queue_wait_s: float = 0.0
    hold: Hold = "never"
    paused: bool = False


@dataclass(frozen=True, slots=True)
class Comparison:
    """The answers of two targets of a route are compared: a request that ``base`` has answered is
    sent again, to ``candidate``, and no client sees that answer.

    - ``share``: percent of the base's requests, from 1 to 100.
    - ``tolerance``: the largest absolute difference of two numbers that still counts as equal.
    """

    base: str
    candidate: str
    share: int
    tolerance: float = 0.0


@dataclass(frozen=True, slots=True)
class Route:
    """One scoring address: ``/endpoints/<name>/`` and below.

    - ``auth``: which credentials are accepted.
    - ``credentials``: the accepted bearer keys of a route with keys. With none of them nobody is
      let in. The same holds for a route with tokens in a table without the ``TokenIssuer`` of that
      ``auth``.
    - ``split``: (target name, percent). It sums to 100 or is empty: then a request with a valid
      credential is answered 404 NoTraffic.
    - ``mirrors``: (target name, percent of the split requests that are mirrored there). The
      response is dropped.
    - ``binding``: the claim that a token of ``aml_token`` must have, so that it opens this route
      and no later one of the same name. Empty in a table of an earlier release: then the claim
      ``endpoint`` decides.
    - ``cors``: the origins whose pages may read the responses, ``*`` for any. None: no CORS
      headers.
    - ``comparison``: whose answers are compared; None: nobody's. Neither target may keep sequences
      or be a user's own container.
    """

    name: str
    credentials: tuple[Secret, ...]
    targets: tuple[Target, ...]
    split: tuple[tuple[str, int], ...] = ()
    mirrors: tuple[tuple[str, int], ...] = ()
    auth: Auth = "key"
    cors: tuple[str, ...] = ()
    binding: str = ""
    comparison: Comparison | None = None

    def __post_init__(self) -> None:
        """Raise ValueError when the route contradicts itself."""
        names = [t.name for t in self.targets]
        if names != sorted(set(names)):
            raise ValueError(f"{self.name}: targets must be sorted by name, each name once")
        for target in self.targets:
            if target.sequences and target.retry_lost:
                raise ValueError(
                    f"{self.name}: target {target.name} repeats lost requests, which sequences do not allow"
                )
            if target.cluster is not None and (target.paused or target.hold == "now"):
                raise ValueError(f"{self.name}: target {target.name} is paused or asleep, and has a cluster")
            if target.paused and target.hold != "never":
                raise ValueError(f"{self.name}: target {target.name} is paused, and holds requests")
        for name, percent in (*self.split, *self.mirrors):
            if name not in names or not 0 < percent <= 100:
                raise ValueError(f"{self.name}: the share {name}={percent} is not possible")
        if self.split and sum(percent for _, percent in self.split) != 100:
            raise ValueError(f"{self.name}: the split does not sum to 100")
        if self.comparison is not None:
            self._check_comparison(self.comparison)

    def _check_comparison(self, comparison: Comparison) -> None:
        of = {target.name: target for target in self.targets}
        pair = [of.get(name) for name in (comparison.base, comparison.candidate)]
        if None in pair or comparison.base == comparison.candidate:
            raise ValueError(f"{self.name}: {comparison.base} and {comparison.candidate} are not two targets")
        if not 0 < comparison.share <= 100 or not 0 <= comparison.tolerance < math.inf:
            raise ValueError(f"{self.name}: a share from 1 to 100 and a finite tolerance are needed")
        if any(target is not None and not comparable(target) for target in pair):
            raise ValueError(f"{self.name}: answers of sequences and of containers are not compared")


def comparable(target: Target) -> bool:
    """Whether answers of ``target`` can be compared, or a request be sent to it twice. A request of
    a sequence would change a state, and a user's own server may answer in a form of its own."""
    return not (target.sequences or target.container)


@dataclass(frozen=True, slots=True)
class TokenIssuer:
    """The issuer of the JSON Web Tokens that routes of one ``auth`` accept (RFC 7519).

    A token is valid when a key of ``jwks`` (a JSON Web Key Set of public keys, RFC 7517) signed it,
    ``iss`` is ``issuer``, it has not expired, and ``aud`` is one of ``audiences``. A token of
    ``aml_token`` is also bound to one route: its claim ``binding`` is the route's.
    """

    auth: Literal["aml_token", "aad_token"]
    issuer: str
    audiences: tuple[str, ...]
    jwks: str


@dataclass(frozen=True, slots=True)
class RoutingTable:
    """The whole table, sorted by name. ``version`` grows with each published change and is not part
    of the content. ``max_unsized_body_bytes``: of a body whose length is not announced; if it is
    larger than ``max_body_bytes``, that counts."""

    version: int
    routes: tuple[Route, ...] = ()
    clusters: tuple[Cluster, ...] = ()
    max_body_bytes: int = 100 * 1024 * 1024
    issuers: tuple[TokenIssuer, ...] = ()
    max_unsized_body_bytes: int = MAX_UNSIZED_BODY_BYTES

    def __post_init__(self) -> None:
        """Raise ValueError when the parts contradict each other. The planner must never make such a
        table."""
        clusters = [c.name for c in self.clusters]
        cluster_names = frozenset(clusters)
        routes = [r.name for r in self.routes]
        issuers = [i.auth for i in self.issuers]
        if issuers != sorted(set(issuers)):
            raise ValueError("issuers must be sorted by auth, each once")
        if clusters != sorted(cluster_names) or routes != sorted(set(routes)):
            raise ValueError("routes and clusters must be sorted by name, each name once")
        for route in self.routes:
            for target in route.targets:
                if target.cluster is not None and target.cluster not in cluster_names:
                    raise ValueError(f"{route.name}: target {target.name} names no cluster: {target.cluster}")

    def same_content(self, other: RoutingTable) -> bool:
        mine, theirs = (
            (t.routes, t.clusters, t.max_body_bytes, t.max_unsized_body_bytes, t.issuers) for t in (self, other)
        )
        return mine == theirs
