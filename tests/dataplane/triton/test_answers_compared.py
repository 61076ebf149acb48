"""Answers of the real Triton, compared behind the real Envoy: what Triton writes is read, in JSON
and as binary tensor data."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tritonclient import http as tritonclient

from amphitrite.dataplane.metrics.answer_counts import COMPARED, DIFFER
from amphitrite.dataplane.metrics.counters import totals_from_json
from amphitrite.dataplane.table.routing_table import Address, Cluster, Comparison, Route, RoutingTable, Secret, Target

from ..agents import BEARER, CHECK, KEY, RunningAgent, eventually
from ..conftest import MakeAgent
from .onnx_models import TYPES

pytestmark = pytest.mark.serving

GREEN = ("images", "green")


def table(triton: Address) -> RoutingTable:
    """Two targets at one Triton, whose scoring addresses are two models."""
    clusters = tuple(Cluster(name, (triton,), 64, 5.0, CHECK) for name in ("b", "g"))
    targets = (
        Target("blue", "b", 30.0, "/v2/models/sequence/infer"),
        Target("green", "g", 30.0, "/v2/models/nearly/infer"),
    )
    route = Route(
        "images", (Secret(KEY),), targets, (("blue", 100),), comparison=Comparison("blue", "green", 100, 0.02)
    )
    return RoutingTable(1, (route,), clusters)


def array(kind: str) -> npt.NDArray[Any]:
    if kind == "BYTES":
        return np.array([[b"a", b""], [b"c", "ü".encode()]], dtype=np.object_)
    dtype = {"FP16": "float16", "FP32": "float32", "FP64": "float64", "BOOL": "bool"}.get(kind, kind.lower())
    return np.array([[0, 1], [1, 0]]).astype(dtype)


def body(*, binary: bool) -> tuple[bytes, dict[str, str]]:
    """A request to the model that answers what it is asked, by Triton's own client. ``binary``: the
    form of the answer; Triton writes no FP16 into JSON."""
    inputs, outputs = [], []
    for kind in TYPES:
        inputs.append(tritonclient.InferInput(f"in_{kind}", [2, 2], kind))
        inputs[-1].set_data_from_numpy(array(kind), binary_data=True)
        outputs.append(tritonclient.InferRequestedOutput(f"out_{kind}", binary_data=binary or kind == "FP16"))
    content, length = tritonclient.InferenceServerClient.generate_request_body(inputs, outputs=outputs)
    return content, {"inference-header-content-length": str(length)}


def answers(agent: RunningAgent) -> tuple[dict[str, float], dict[str, float]]:
    totals = totals_from_json(agent.control_plane.metrics or {"began": 0, "counters": {}, "in_flight": {}, "used": {}})
    counts = {n: v for n, v in totals.counters.get(GREEN, {}).items() if n.startswith("answers/")}
    return counts, dict(totals.differences.get(GREEN, {}))


@pytest.mark.parametrize("triton", ["native"], indirect=True)
def test_what_triton_answers_is_compared(triton: Address, make_agent: MakeAgent) -> None:
    agent = make_agent()
    agent.options = ("--metrics-every-s", "0.1")
    agent.start()
    wanted = table(triton)
    agent.put_in_force(wanted)
    for binary in (True, False):
        content, headers = body(binary=binary)
        sent = {**BEARER, **headers}
        answer = agent.client.post("/endpoints/images/v2/models/types/infer", headers=sent, content=content)
        assert answer.status_code == 200, answer.text
    eventually(lambda: answers(agent)[0].get(COMPARED) == 2)
    assert answers(agent) == ({COMPARED: 2}, {f"out_{kind}": 0.0 for kind in TYPES if kind != "BYTES"})

    def score(numbers: list[float]) -> None:
        tensor = {"name": "x", "datatype": "FP32", "shape": [len(numbers)], "data": numbers}
        answer = agent.client.post("/endpoints/images/", headers=BEARER, json={"inputs": [tensor]})
        assert answer.status_code == 200, answer.text

    for n in range(40):
        score([n, n + 1.0, 0.5])
    eventually(lambda: answers(agent)[0].get(COMPARED) == 42)
    counts, differences = answers(agent)
    assert counts == {COMPARED: 42} and differences["y"] == pytest.approx(0.01, abs=1e-5)
    route = wanted.routes[0]
    assert route.comparison is not None
    strict = replace(route, comparison=replace(route.comparison, tolerance=0.001))
    agent.put_in_force(replace(wanted, version=2, routes=(strict,)))
    for n in range(10):
        score([n, n + 1.0, 0.5])
    eventually(lambda: answers(agent)[0].get(COMPARED) == 52)
    assert answers(agent)[0] == {COMPARED: 52, DIFFER: 10}
