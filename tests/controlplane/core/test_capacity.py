"""Whether pods fit, and the sentence about it; properties of ``fits`` over random clusters."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amphitrite.controlplane.core.capacity.node_capacity import (
    NodeCapacity,
    PodDemand,
    Taint,
    fits,
    format_quantity,
    quantity,
)
from amphitrite.controlplane.core.desired.compute_clusters import PodShape
from amphitrite.controlplane.core.desired.instance_types import GPU

V100 = PodShape("Standard_NC6s_v3", requests=(("cpu", "1"), (GPU, "1")), limits=((GPU, "1"),))
TAINTED = {"taints": (Taint(GPU, "", "NoSchedule"),)}


def node(name: str, *pods: PodDemand, gpus: int = 4, cpu: str = "8", **more: Any) -> NodeCapacity:
    return NodeCapacity(name, {"cpu": cpu, "memory": "64Gi", GPU: str(gpus), "pods": "110"}, pods, **more)


def taking(owner: str, gpus: int, cpu: str = "0") -> PodDemand:
    return PodDemand(owner, {GPU: str(gpus), "cpu": cpu})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("0", 0),
        ("500m", Fraction(1, 2)),
        ("2.5", Fraction(5, 2)),
        (".5", Fraction(1, 2)),
        ("100u", Fraction(1, 10_000)),
        ("5n", Fraction(5, 10**9)),
        ("4Gi", 4 * 1024**3),
        ("1.5Ki", 1536),
        ("2M", 2_000_000),
        ("2k", 2000),
        ("1e3", 1000),
        ("1E3", 1000),
        ("1E", 10**18),
        ("1Ei", 1024**6),
        ("12e-1", Fraction(6, 5)),
        (" 3 ", 3),
        ("-1", -1),
    ],
)
def test_quantities(text: str, value: Any) -> None:
    assert quantity(text) == value


@pytest.mark.parametrize("text", ["", "Gi", "1 Gi", "1gi", "1K", "m", "one", "1e", "1ee3", "1.2.3", "0x1", "1GiB"])
def test_no_quantities(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity such as 500m, 2 or 4Gi"):
        quantity(text)


@pytest.mark.parametrize(
    ("resource", "value", "text"),
    [
        ("memory", Fraction(3 * 1024**3, 2), "1.5 GiB"),
        ("cpu", Fraction(2, 3), "0.66"),
        (GPU, Fraction(4), "4"),
        ("cpu", Fraction(-1, 2), "-0.5"),
    ],
)
def test_format_quantity(resource: str, value: Fraction, text: str) -> None:
    assert format_quantity(resource, value) == text


#: What is there, what is asked for -> how many fit, and the sentence.
ROWS: list[tuple[list[NodeCapacity], PodShape, int, int, str]] = [
    (
        [node("node-1", taking("cats/blue", 3))],
        V100,
        3,
        1,
        "3 instances of Standard_NC6s_v3 need 3 nvidia.com/gpu; 1 of 4 is free: "
        "node-1 has 4, 3 are requested by cats/blue",
    ),
    (
        [node("node-1", taking("cats/blue", 1), taking("cats/blue", 1), taking("dogs/red", 1))],
        V100,
        1,
        1,
        "1 instance of Standard_NC6s_v3 needs 1 nvidia.com/gpu; 1 of 4 is free: "
        "node-1 has 4, 3 are requested by cats/blue; dogs/red",
    ),
    (
        [node("node-1", taking("a/b", 3)), node("node-2", taking("c/d", 3))],
        PodShape("two", ((GPU, "2"),)),
        1,
        0,
        "1 instance of two needs 2 nvidia.com/gpu; 2 of 8 is free: node-1 has 4, 3 are requested by a/b; "
        "node-2 has 4, 3 are requested by c/d; there is capacity for 0, because each instance must fit on one node",
    ),
    (
        [node("node-1", cpu="2")],
        PodShape("big", (("memory", "60Gi"),)),
        2,
        1,
        "2 instances of big need 120 GiB of memory; 64 GiB of 64 GiB is free: node-1 has 64 GiB",
    ),
    (
        [node("node-1", **TAINTED)],
        V100,
        1,
        0,
        "1 instance of Standard_NC6s_v3 cannot be placed: no node accepts them: "
        "node-1 has the taint nvidia.com/gpu:NoSchedule",
    ),
    (
        [node("node-1", **TAINTED), node("node-2", schedulable=False)],
        PodShape("t", ((GPU, "1"),), scheduling={"tolerations": [{"key": GPU, "operator": "Exists"}]}),
        5,
        4,
        "5 instances of t need 5 nvidia.com/gpu; 4 of 4 is free: node-1 has 4; "
        "not counted: node-2 accepts no pods (not ready or cordoned)",
    ),
    (
        [node("node-1", labels={"gpu": "t4"})],
        PodShape("l", (("cpu", "1"),), scheduling={"nodeSelector": {"gpu": "a100"}}),
        1,
        0,
        "1 instance of l cannot be placed: no node accepts them: node-1 lacks the label gpu=a100",
    ),
    ([], V100, 1, 0, "1 instance of Standard_NC6s_v3 cannot be placed: the cluster has no node"),
    (
        [NodeCapacity("n", {"nvidia.com/mig-1g.10gb": "7"}, (PodDemand("a/b", {"nvidia.com/mig-1g.10gb": "6"}),))],
        PodShape("slice", limits=(("nvidia.com/mig-1g.10gb", "1"),)),
        1,
        1,
        "1 instance of slice needs 1 nvidia.com/mig-1g.10gb; 1 of 7 is free: n has 7, 6 are requested by a/b",
    ),
    (
        [NodeCapacity("n", {"cpu": "8", "pods": "3"}, (PodDemand("a/b", {}), PodDemand("a/b", {})))],
        PodShape("small", (("cpu", "100m"),)),
        2,
        1,
        "2 instances of small need 2 pods; 1 of 3 is free: n has 3, 2 are requested by a/b",
    ),
]


@pytest.mark.parametrize(("nodes", "shape", "count", "room", "sentence"), ROWS)
def test_rows(nodes: list[NodeCapacity], shape: PodShape, count: int, room: int, sentence: str) -> None:
    found = fits(nodes, shape, count)
    assert (found.capacity, found.fits, found.sentence) == (room, count <= room, sentence)


@pytest.mark.parametrize(
    ("taint", "toleration", "tolerated"),
    [
        (Taint("a", "b"), {"key": "a", "value": "b"}, True),
        (Taint("a", "b"), {"key": "a", "operator": "Equal", "value": "c"}, False),
        (Taint("a", "b"), {"key": "a", "operator": "Exists"}, True),
        (Taint("a", "b"), {"operator": "Exists"}, True),
        (Taint("a", "b"), {"key": "a", "operator": "Exists", "effect": "NoExecute"}, False),
        (Taint("a", "", "NoExecute"), {"key": "a", "effect": "NoExecute"}, True),
        (Taint("a", "b", "PreferNoSchedule"), {}, True),
    ],
)
def test_taints(taint: Taint, toleration: dict[str, Any], tolerated: bool) -> None:
    shape = PodShape("s", (("cpu", "1"),), scheduling={"tolerations": [toleration] if toleration else []})
    assert fits([node("n", taints=(taint,))], shape, 1).fits == tolerated


def test_a_sentence_names_a_few_nodes_and_counts_the_others() -> None:
    text = fits([node(f"n{i}", gpus=0) for i in range(9)], V100, 1).sentence
    assert text.endswith("n0 has 0; n1 has 0; n2 has 0; n3 has 0; and 5 more")


numbers = st.integers(0, 6).map(str)
demands = st.builds(PodDemand, st.sampled_from(["a/b", "c/d"]), st.fixed_dictionaries({GPU: numbers, "cpu": numbers}))
clusters = st.lists(
    st.builds(
        NodeCapacity,
        st.uuids().map(str),
        st.fixed_dictionaries({GPU: numbers, "cpu": numbers, "pods": numbers}),
        st.lists(demands, max_size=3).map(tuple),
        taints=st.sampled_from([(), (Taint("x"),)]),
        schedulable=st.booleans(),
    ),
    max_size=4,
)
shapes = st.builds(
    lambda gpus, cpu: PodShape("t", ((GPU, str(gpus)), ("cpu", str(cpu)))), st.integers(0, 3), st.integers(0, 3)
)


@given(clusters, shapes, st.integers(0, 12))
def test_yes_is_never_said_when_a_total_is_short(nodes: list[NodeCapacity], shape: PodShape, count: int) -> None:
    if not fits(nodes, shape, count).fits:
        return
    for resource, one in shape.requests:
        free = sum(
            max(int(n.allocatable[resource]) - sum(int(p.requests[resource]) for p in n.pods), 0)
            for n in nodes
            if n.schedulable and not n.taints
        )
        assert free >= int(one) * count


@given(clusters, shapes, st.integers(0, 12))
def test_fewer_fit_where_more_do(nodes: list[NodeCapacity], shape: PodShape, count: int) -> None:
    found = fits(nodes, shape, count)
    assert found.fits == (count <= found.capacity)
    assert fits(nodes, shape, count + 1).capacity == found.capacity


@given(clusters, shapes, demands)
def test_room_shrinks_with_each_pod_and_grows_with_each_node(
    nodes: list[NodeCapacity], shape: PodShape, pod: PodDemand
) -> None:
    room = fits(nodes, shape, 1).capacity
    assert fits([*nodes, node("more")], shape, 1).capacity >= room
    fuller = [NodeCapacity(n.name, n.allocatable, (*n.pods, pod), n.labels, n.taints, n.schedulable) for n in nodes]
    assert fits(fuller, shape, 1).capacity <= room


@given(clusters, shapes)
def test_what_fits_can_be_placed_one_by_one(nodes: list[NodeCapacity], shape: PodShape) -> None:
    """Placing one after the other, wherever there is room, ends after ``room`` pods."""
    room, placed, current = fits(nodes, shape, 1).capacity, 0, list(nodes)
    mine = PodDemand("t/t", dict(shape.requests))
    while True:
        index = next((i for i, n in enumerate(current) if fits([n], shape, 1).fits), None)
        if index is None:
            break
        n = current[index]
        current[index] = NodeCapacity(n.name, n.allocatable, (*n.pods, mine), n.labels, n.taints, n.schedulable)
        placed += 1
    assert placed == room
