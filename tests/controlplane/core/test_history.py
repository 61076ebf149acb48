"""Which changes a history shows, and what an undo or a rollback brings back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amphitrite.controlplane.core.history import deployment_history, traffic_history
from amphitrite.controlplane.core.history.revisions import Cause, Revision
from amphitrite.controlplane.core.history.traffic_history import Traffic
from amphitrite.schemas.errors import Error


def revisions(*documents: dict[str, Any], first: Cause = "create") -> list[Revision]:
    return [
        Revision(number, float(number), "ada", "", "update" if number > 1 else first, document)
        for number, document in enumerate(documents, 1)
    ]


def traffic(**shares: int) -> dict[str, Any]:
    return {"name": "cats", "traffic": shares}


ROWS = [
    ("nothing is kept", revisions(), []),
    ("created without traffic", revisions({"name": "cats"}), []),
    ("created with traffic", revisions(traffic(blue=100)), [({}, {"blue": 100})]),
    ("older than histories", revisions(traffic(blue=100), first="earlier"), []),
    ("another field", revisions(traffic(blue=100), {**traffic(blue=100), "tags": {"a": "b"}}), [({}, {"blue": 100})]),
    ("a share of 0 is none", revisions({"name": "cats"}, traffic(blue=0)), []),
    (
        "newest first",
        revisions(traffic(blue=100), traffic(blue=90, green=10), traffic(green=100), first="earlier"),
        [({"blue": 90, "green": 10}, {"green": 100}), ({"blue": 100}, {"blue": 90, "green": 10})],
    ),
]


@pytest.mark.parametrize(("kept", "wanted"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_changes_of_traffic(kept: list[Revision], wanted: list[tuple[dict[str, int], dict[str, int]]]) -> None:
    found = traffic_history.changes(kept)
    assert [(one.before.live, one.after.live) for one in found] == wanted


def test_mirrored_traffic_is_part_of_it() -> None:
    kept = revisions(traffic(blue=100), {**traffic(blue=100), "mirror_traffic": {"green": 10}}, first="earlier")
    [change] = traffic_history.changes(kept)
    assert (change.before.mirrored, change.after.mirrored) == ({}, {"green": 10})
    assert traffic_history.with_traffic(kept[-1].document, change.before) == {**traffic(blue=100), "mirror_traffic": {}}


SHARES = st.dictionaries(st.sampled_from(["blue", "green", "red"]), st.integers(0, 100), max_size=3)
DOCUMENTS = st.fixed_dictionaries(
    {"name": st.just("cats")}, optional={"traffic": SHARES, "mirror_traffic": SHARES, "tags": st.just({"a": "b"})}
)


@given(st.lists(DOCUMENTS, min_size=1, max_size=6))
def test_a_second_undo_takes_the_first_back(documents: list[dict[str, Any]]) -> None:
    kept = revisions(*documents)
    if not traffic_history.changes(kept):
        with pytest.raises(Error, match="was never changed"):
            traffic_history.before_last_change("cats", kept)
        return
    undone = traffic_history.with_traffic(documents[-1], traffic_history.before_last_change("cats", kept))
    again = revisions(*documents, undone)
    back = traffic_history.with_traffic(undone, traffic_history.before_last_change("cats", again))
    assert traffic_history.traffic_of(back) == traffic_history.traffic_of(documents[-1])
    assert {name: back[name] for name in back if "traffic" not in name} == {
        name: documents[-1][name] for name in documents[-1] if "traffic" not in name
    }


def test_a_revision_of_traffic() -> None:
    kept = revisions(traffic(blue=100), traffic(green=100))
    assert traffic_history.at_revision("cats", kept, 1) == Traffic({"blue": 100}, {})
    with pytest.raises(Error, match="has no revision 3"):
        traffic_history.at_revision("cats", kept, 3)


def deployment(model: int, count: int = 1, **more: Any) -> dict[str, Any]:
    return {"name": "blue", "model": f"m:{model}", "instance_count": count, **more}


ROLLBACKS = [
    ("to the model before", [deployment(1), deployment(2)], None, deployment(1)),
    ("the number of instances stays", [deployment(1, 1), deployment(2, 5)], None, deployment(1, 5)),
    ("a change of scale is no release", [deployment(1), deployment(2), deployment(2, 5)], None, deployment(1, 5)),
    ("a field that was not there goes", [deployment(1), deployment(1, tags={"a": "b"})], None, deployment(1)),
    ("to a number", [deployment(1), deployment(2), deployment(3)], 1, deployment(1)),
    ("to itself", [deployment(1), deployment(2)], 2, deployment(2)),
    ("back and forth", [deployment(1), deployment(2), deployment(1)], None, deployment(2)),
]


@pytest.mark.parametrize(("documents", "number", "wanted"), [r[1:] for r in ROLLBACKS], ids=[r[0] for r in ROLLBACKS])
def test_what_a_rollback_stores(documents: list[dict[str, Any]], number: int | None, wanted: dict[str, Any]) -> None:
    assert deployment_history.document_of("cats/blue", revisions(*documents), number) == wanted


@pytest.mark.parametrize(
    ("documents", "number", "message"),
    [
        ([], None, "no earlier revision"),
        ([deployment(1), deployment(1, 2)], None, "no earlier revision"),
        ([deployment(1)], 7, "has no revision 7"),
    ],
)
def test_no_way_back(documents: list[dict[str, Any]], number: int | None, message: str) -> None:
    with pytest.raises(Error, match=message):
        deployment_history.document_of("cats/blue", revisions(*documents), number)


def test_fields_that_a_revision_changed() -> None:
    kept = revisions(deployment(1), deployment(2, 1, tags={}), deployment(2, 3))
    assert [one.changed for one in deployment_history.changes(kept)] == [
        ("instance_count", "tags"), ("model", "tags"), (),
    ]  # fmt: skip
