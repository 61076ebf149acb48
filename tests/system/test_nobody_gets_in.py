"""The control plane's port, and Triton itself, against what was not meant for them. The scoring
port's own table is in ``tests/dataplane/test_nobody_gets_in.py``; what the API accepts as its token
is in ``tests/controlplane/api/test_access.py``."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence

import pytest

from amphitrite.schemas.names import workspace_id

from ..load.closed_loop import Connection, request_bytes
from .product import Product

pytestmark = pytest.mark.serving

WORKSPACE = workspace_id("local", "local", "local")
PATHS = (
    f"{WORKSPACE}/onlineEndpoints",
    f"{WORKSPACE}/onlineEndpoints/cats/listKeys",
    "/dataplane/v1/routing-table",
    "/dataplane/v1/agents",
    "/fetch/v1/models/x",
)
SHOWN: dict[str, Callable[[Product], str | None]] = {
    "none": lambda product: None,
    "an endpoint's key": lambda product: f"Bearer {product.keys()[0]}",
    "a token for scoring": lambda product: f"Bearer {product.identity('https://ml.azure.com')['access_token']}",
}
TRICKS: dict[str, Callable[[str], str]] = {
    "plain": lambda p: p,
    "dots": lambda p: f"/openapi.json/..{p}",
    "public first": lambda p: f"/healthz/..{p}",
    "two slashes": lambda p: p.replace("/", "//"),
    "encoded slash": lambda p: p[0] + p[1:].replace("/", "%2f"),
    "encoded letter": lambda p: f"/%{ord(p[1]):02x}{p[2:]}",
    "case": lambda p: p.upper(),
    "absolute form": lambda p: f"https://127.0.0.1{p}",
    "slash after": lambda p: f"{p}/",
}


Row = tuple[str, bytes | None]


def asked(product: Product, port: int, rows: Sequence[Row], authorization: str | None) -> list[int]:
    """The status of each, of the path exactly as it is written, on one connection as long as that
    is kept."""
    headers = [] if authorization is None else [f"authorization: {authorization}"]
    context = ssl.create_default_context(cafile=str(product.ca_file))
    kept: list[Connection] = []
    statuses = []
    for path, body in rows:
        request = request_bytes(f"https://127.0.0.1:{port}/", headers, body).replace(b" / ", f" {path} ".encode(), 1)
        kept = kept or [Connection("127.0.0.1", port, context, 10)]
        answer = kept[0].exchange(request)
        statuses.append(answer.status)
        if answer.close:
            kept.pop().close()
    for connection in kept:
        connection.close()
    return statuses


@pytest.mark.parametrize("shown", SHOWN)
def test_the_control_plane_stays_shut(shared: Product, shown: str) -> None:
    authorization = SHOWN[shown](shared)
    rows = {
        (trick, path, body): (write(path), body)
        for trick, write in TRICKS.items()
        for path in PATHS
        for body in (None, b"{}")
    }
    statuses = dict(zip(rows, asked(shared, shared.port, list(rows.values()), authorization), strict=True))
    assert {row: status for row, status in statuses.items() if status not in (400, 401, 403, 404, 405)} == {}


@pytest.mark.parametrize("path", ["v2/%2572epository/index", "v2;x=y/repository;x=y/index"])
def test_triton_tidies_nothing_up(shared: Product, path: str) -> None:
    """What passes Envoy in a strange form is no path of Triton's: it answers 404, which the router
    tells as 424."""
    authorization = f"Bearer {shared.keys()[0]}"
    assert asked(shared, shared.scoring_port, [(f"/endpoints/cats/{path}", b"{}")], authorization) == [424]
