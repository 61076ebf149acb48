"""Tables as text: what is remembered of the table before must never be seen in the one after."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import pytest

from amphitrite.dataplane.table.json_codec import to_json
from amphitrite.dataplane.table.routing_table import (
    Address,
    Cluster,
    Comparison,
    Route,
    RoutingTable,
    Secret,
    Target,
    TokenIssuer,
)
from amphitrite.dataplane.table.text_codec import TableText, apply_change, encode_change

BLUE, GREEN = Target("blue", "a|blue", 5.0), Target("green", "a|green", 5.0, sequences=True)
ROUTE = Route("a", (Secret("key"),), (BLUE, GREEN), (("blue", 100),), (("green", 10),))
CLUSTERS = (Cluster("a|blue", (Address("127.0.0.1", 1, 2),), 4, 5.0), Cluster("a|green", (), 4, 60))
BASE = RoutingTable(3, (ROUTE, Route("b", (), ())), CLUSTERS)
COMPARED = replace(
    ROUTE, targets=(BLUE, replace(GREEN, sequences=False)), comparison=Comparison("blue", "green", 5, 1e-3)
)

TABLES = {
    "empty": RoutingTable(4),
    "nothing": replace(BASE, version=4),
    "split": replace(BASE, version=4, routes=(replace(ROUTE, split=(("green", 100),)), *BASE.routes[1:])),
    "keys": replace(BASE, version=4, routes=(replace(ROUTE, credentials=()), *BASE.routes[1:])),
    "addresses": replace(BASE, version=4, clusters=(replace(CLUSTERS[0], addresses=()), CLUSTERS[1])),
    "added": replace(BASE, version=4, routes=(Route("0", (), (), cors=("*",)), *BASE.routes)),
    "removed": replace(BASE, version=4, routes=BASE.routes[1:], clusters=CLUSTERS[1:]),
    "body": replace(BASE, version=4, max_body_bytes=7),
    "comparison": replace(BASE, version=4, routes=(COMPARED, *BASE.routes[1:])),
    "issuers": replace(BASE, version=4, issuers=(TokenIssuer("aad_token", "https://é", ("x", "y"), "{}"),)),
}


def digest(table: RoutingTable) -> str:
    """What names the content of a table, worked out from all of it."""
    content = json.loads(json.dumps({**to_json(table), "version": 0}), parse_int=float)
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]


@pytest.mark.parametrize("name", TABLES)
def test_the_text_is_the_tables_whatever_was_remembered(name: str) -> None:
    table, text = TABLES[name], TableText()
    for one in (table, BASE, table, table):
        assert json.loads(text.whole(one)) == to_json(one)
        assert text.digest(one) == digest(one)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("back", [False, True])
def test_a_change_makes_the_one_table_of_the_other(name: str, back: bool) -> None:
    since, table = (TABLES[name], BASE) if back else (BASE, TABLES[name])
    value = json.loads(encode_change(since, table))
    assert apply_change(since, value) == table
    assert len(value["routes"]) <= 2


def test_what_has_not_changed_does_not_travel_and_stays_the_same_object() -> None:
    text = encode_change(BASE, TABLES["split"])
    made = apply_change(BASE, json.loads(text))
    assert "127.0.0.1" not in text
    assert made.clusters[0] is CLUSTERS[0]
    assert made.routes[1] is BASE.routes[1]


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ({"since": 2}, ValueError),
        ({"since": 3, "gone": {"routes": ["no such"], "clusters": []}, "routes": [], "clusters": []}, KeyError),
        ({"gone": {}}, KeyError),
    ],
)
def test_a_change_of_another_table_is_refused(value: dict[str, object], error: type[Exception]) -> None:
    with pytest.raises(error):
        apply_change(BASE, {"version": 4, "max_body_bytes": 1, "issuers": [], **value})


@pytest.mark.parametrize(
    ("comparison", "message"),
    [
        (Comparison("blue", "red", 5), "are not two targets"),
        (Comparison("red", "blue", 5), "are not two targets"),
        (Comparison("blue", "blue", 5), "are not two targets"),
        (Comparison("blue", "green", 0), "a share from 1 to 100"),
        (Comparison("blue", "green", 101), "a share from 1 to 100"),
        (Comparison("blue", "green", 1, -0.1), "a finite tolerance"),
        (Comparison("blue", "green", 1, float("inf")), "a finite tolerance"),
        (Comparison("blue", "green", 1, float("nan")), "a finite tolerance"),
        (Comparison("blue", "own", 5), "sequences and of containers"),
        (Comparison("state", "blue", 5), "sequences and of containers"),
    ],
)
def test_what_cannot_be_compared_is_no_route(comparison: Comparison, message: str) -> None:
    targets = (
        BLUE,
        replace(GREEN, sequences=False),
        Target("own", None, 5.0, container=True),
        Target("state", None, 5.0, sequences=True),
    )
    with pytest.raises(ValueError, match=message):
        replace(ROUTE, targets=targets, mirrors=(), comparison=comparison)
