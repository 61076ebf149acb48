"""One routing table in which every rule of a request's path occurs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from amphitrite.dataplane.table.routing_table import Address, Cluster, Route, RoutingTable, Secret, Target

from .agents import CHECK, PATIENCE_S
from .grpc_upstream import GrpcUpstream
from .minting import ISSUERS, binding, issuer
from .upstream import FAILURES, Upstream

MAX_BODY = 2_000_000
MAX_UNSIZED_BODY = 1_500_000
#: Every route is at a host below it too.
DOMAIN = "ml.example.org"
KEYS = ("primary-key", "secondary-key")
#: What was good, and is not any more: a key that was regenerated, and a token whose signing key is
#: gone.
REVOKED_KEY, REVOKED_KID = "regenerated-key", "gone"
BLUE_PERCENT = 70
MIRROR_PERCENT = 40
#: A page of this origin may score ``images``.
ORIGIN = "https://a.example"
#: As many characters as a document may have of them.
ORIGINS = (ORIGIN, *(f"https://{n:0>25}.example:3000" for n in range(16)), f"https://{'b' * 87}")


def rule_table(upstreams: Mapping[str, Upstream], by_grpc: Mapping[str, GrpcUpstream]) -> RoutingTable:
    """``by_grpc``: the same that speak gRPC too.

    ``images``: a split and a mirror; ``pair``: two instances, one target that repeats lost requests
    and one that does not; ``idle``: no traffic; ``closed``: no key; ``solo``: one slow, bounded
    target; ``ill``: unhealthy; ``mirrored``: two mirrors; ``streams``: a second between two pieces;
    ``own``: a user's own server, mirrored to a Triton; ``own-copied``: the other way round;
    ``failing``: a target for each of FAILURES, called by its name; ``tokens``, ``other-tokens`` and
    ``oidc``: as ``images``, for tokens."""

    keys = tuple(Secret(k) for k in KEYS)
    images = (
        Target("absent", None, PATIENCE_S),
        Target("blue", "blue", PATIENCE_S, "/v2/models/m/infer"),
        Target("green", "green", PATIENCE_S, None, "the deployment serves 2 models (a, b)"),
    )
    own = images[1], replace(images[2], score_path="/score", container=True)
    failing = tuple(Target(name, "blue", PATIENCE_S, f"/v2/models/{name}/infer") for name in sorted(FAILURES))
    ports = {name: one.port for name, one in by_grpc.items()}
    alone = {name: [Address("127.0.0.1", one.port, ports.get(name))] for name, one in upstreams.items()}
    copied = tuple(Target(name, name, PATIENCE_S) for name in ("blue", "green", "grey", "red"))
    split = (("blue", BLUE_PERCENT), ("green", 100 - BLUE_PERCENT))
    return RoutingTable(
        version=2,
        issuers=ISSUERS,
        routes=(
            Route("closed", (), (Target("blue", "blue", PATIENCE_S),), (("blue", 100),)),
            Route("failing", keys, failing),
            Route("idle", keys, (Target("blue", "blue", PATIENCE_S),)),
            Route("ill", keys, (Target("ill", "ill", PATIENCE_S),), (("ill", 100),), cors=("*",)),
            Route("images", keys, images, split, (("green", 50),), cors=ORIGINS),
            Route("mirrored", keys, copied, split, (("grey", MIRROR_PERCENT), ("red", 100))),
            Route("oidc", (), images, split, auth="aad_token"),
            Route("other", (Secret("other-key"),), (Target("blue", "blue", PATIENCE_S),), (("blue", 100),)),
            Route("other-tokens", (), images, split, auth="aml_token", binding=binding("other-tokens")),
            Route("own", keys, own, (("green", 100),), (("blue", 100),)),
            Route("own-copied", keys, own, (("blue", 100),), (("green", 100),)),
            Route(
                "pair",
                keys,
                (Target("repeated", "pair", PATIENCE_S, retry_lost=True), Target("strict", "pair", PATIENCE_S)),
                (("strict", 100),),
            ),
            Route("solo", keys, (Target("solo", "solo", 0.5, "/v2/models/m/infer", per_instance=2),), (("solo", 100),)),
            Route("streams", keys, (Target("red", "red", 1.0),), (("red", 100),)),
            Route(
                "tokens", (), images, split, (("green", 50),), auth="aml_token", cors=("*",), binding=binding("tokens")
            ),
        ),
        clusters=tuple(
            # Copies may pile up on a busy machine, and those above the bound would be dropped.
            Cluster(name, tuple(sorted(served)), {"solo": 2, "grey": 2000, "red": 2000}.get(name, 64), 5.0, CHECK)
            for name, served in sorted({**alone, "pair": [*alone["blue"], *alone["green"]]}.items())
        ),
        max_body_bytes=MAX_BODY,
        max_unsized_body_bytes=MAX_UNSIZED_BODY,
    )


def before(table: RoutingTable) -> RoutingTable:
    """As it was while what is revoked was good."""
    routes = tuple(
        replace(route, credentials=(*route.credentials, Secret(REVOKED_KEY))) if route.name == "images" else route
        for route in table.routes
    )
    issuers = tuple(issuer("one", "two", REVOKED_KID) if one.auth == "aml_token" else one for one in table.issuers)
    return replace(table, version=table.version - 1, routes=routes, issuers=issuers)
