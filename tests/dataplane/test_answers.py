"""Answers that the real Envoy shows and the agent compares: what is counted, and that requests do
not notice."""

from __future__ import annotations

import gzip
import json
import signal
import struct
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest

from amphitrite.dataplane.comparison.answers import BODY_MAX
from amphitrite.dataplane.machine import processes
from amphitrite.dataplane.metrics.answer_counts import FIELDS
from amphitrite.dataplane.metrics.counters import totals_from_json
from amphitrite.dataplane.table.routing_table import Comparison, RoutingTable

from .agents import BEARER, INFER, RunningAgent, cluster, eventually, table
from .conftest import MakeAgent
from .minting import ISSUERS, binding, mint
from .upstream import Upstream

pytestmark = pytest.mark.serving

SCORE = "/endpoints/images/"
GREEN = ("images", "green")


def model(add: float = 0.0, *, swap: bool = False) -> Callable[[bytes], tuple[bytes, dict[str, str]]]:
    """A model of which ``scores`` are the inputs, a bit more, or in another order."""

    def answer(body: bytes) -> tuple[bytes, dict[str, str]]:
        numbers = [number + add for number in json.loads(body)["inputs"]]
        data = numbers[::-1] if swap else numbers
        output = {"name": "scores", "datatype": "FP32", "shape": [1, len(data)], "data": data}
        return json.dumps({"model_name": "m", "outputs": [output]}).encode(), {}

    return answer


def binary(body: bytes) -> tuple[bytes, dict[str, str]]:
    numbers = json.loads(body)["inputs"]
    output = {
        "name": "bits",
        "datatype": "FP32",
        "shape": [len(numbers)],
        "parameters": {"binary_data_size": 4 * len(numbers)},
    }
    text = json.dumps({"outputs": [output]}).encode()
    return text + struct.pack(f"<{len(numbers)}f", *numbers), {"inference-header-content-length": str(len(text))}


class Compared:
    """An agent with the targets blue and green, of which green's answers are compared."""

    def __init__(self, agent: RunningAgent, blue: Upstream, green: Upstream) -> None:
        self.agent, self.blue, self.green = agent, blue, green
        self._version = 0
        self._before: dict[str, float] = {}

    def table(self, share: int = 100, tolerance: float = 0.01) -> RoutingTable:
        self._version += 1
        made = table(self._version, [cluster("blue", [self.blue]), cluster("green", [self.green])], [("blue", 100)])
        compared = Comparison("blue", "green", share, tolerance) if share else None
        return replace(made, routes=(replace(made.routes[0], comparison=compared),))

    def send(self, numbers: list[float], path: str = INFER, **headers: str) -> Any:
        answer = self.agent.client.post(path, headers={**BEARER, **headers}, json={"inputs": numbers})
        assert answer.status_code == 200, answer.text
        return answer

    def counts(self) -> dict[str, float]:
        """Of green, since the last :meth:`expect`."""
        report = self.agent.control_plane.metrics
        fields = totals_from_json(report).counters.get(GREEN, {}) if report else {}
        found = {name.removeprefix("answers/"): fields.get(name, 0) - self._before.get(name, 0) for name in FIELDS}
        return {name: n for name, n in found.items() if n}

    def expect(self, **counts: float) -> None:
        """Waits until exactly these were counted since the last call."""
        total = sum(counts.get(name, 0) for name in ("compared", "dropped"))
        eventually(lambda: sum(self.counts().get(name, 0) for name in ("compared", "dropped")) >= total)
        assert self.counts() == counts
        for name, n in counts.items():
            self._before[f"answers/{name}"] = self._before.get(f"answers/{name}", 0) + n

    def differences(self) -> dict[str, float]:
        report = self.agent.control_plane.metrics
        assert report is not None
        return dict(totals_from_json(report).differences.get(GREEN, {}))


@pytest.fixture
def compared(make_agent: MakeAgent) -> Iterator[Compared]:
    with ExitStack() as stack:
        blue, green = (stack.enter_context(Upstream(name)) for name in ("blue", "green"))
        blue.answer, green.answer = model(), model()
        agent = make_agent()
        agent.options = ("--metrics-every-s", "0.1")
        agent.start()
        made = Compared(agent, blue, green)
        agent.put_in_force(made.table())
        yield made


def test_every_answer_is_compared_once(compared: Compared) -> None:
    blue, green, send = compared.blue, compared.green, compared.send
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(send, [[0.1, 0.9]] * 40))
    compared.expect(compared=40)
    assert len(green.scored()) == len(blue.scored()) == 40
    green.answer = model(0.005)
    send([0.1, 0.9], SCORE)  # The scoring address.
    send([0.1, 0.9], f"{INFER}?a=b", **{"azureml-model-deployment": "blue"})
    compared.expect(compared=2)
    assert compared.differences() == {"scores": pytest.approx(0.005)}
    green.answer = model(0.5)
    send([0.1, 0.9])
    compared.expect(compared=1, differ=1)
    green.answer = model(swap=True)
    send([0.1, 0.9])
    send([0.5, 0.501])
    compared.expect(compared=2, differ=1, disagree=2)
    assert compared.differences() == {"scores": pytest.approx(0.8)}
    green.answer = blue.answer = binary
    send([1.0, 2.0])
    compared.expect(compared=1)
    green.answer = lambda body: (b'{"error":"no"}', {})
    send([1.0])
    green.answer = None
    send([1.0])  # An echo is no answer of KServe V2.
    compared.expect(compared=2, differ=2, disagree=2, failed=2)
    blue.answer = lambda body: (lambda text, headers: (gzip.compress(text), {**headers, "content-encoding": "gzip"}))(
        *model()(body)
    )
    green.answer = model()
    send([1.0])
    compared.expect(compared=1)
    repeated = green.scored()[-1]
    assert (repeated["path"], repeated["method"]) == ("/v2/models/m/infer", "POST")
    assert set(repeated["headers"]) == {"host", "accept-encoding", "content-length", "content-type"}
    # Neither is green asked by anybody, nor was anything in flight on it.
    report = totals_from_json(compared.agent.control_plane.metrics or {})
    assert {name for name in report.counters[GREEN] if not name.startswith("answers/")} == set()


def test_what_is_not_compared(compared: Compared) -> None:
    blue, green, send = compared.blue, compared.green, compared.send
    client = compared.agent.client
    compressed = gzip.compress(b'{"inputs":[1]}')
    blue.answer = None
    assert client.post(INFER.replace("/m/", "/fails/"), headers=BEARER, json={}).status_code == 424
    assert client.post(INFER, headers={**BEARER, "content-encoding": "gzip"}, content=compressed).status_code == 200
    assert client.get("/endpoints/images/v2/models/m", headers=BEARER).status_code == 200
    assert client.post("/endpoints/images/v2/models/m/generate", headers=BEARER, json={}).status_code == 200
    assert client.post(INFER, headers=BEARER, content=b" " * (BODY_MAX + 1)).status_code == 200
    assert client.post(INFER, headers={**BEARER, "azureml-model-deployment": "green"}, json={"inputs": []}).is_success
    green.requests.clear()
    send([1.0])  # An echo.
    compared.expect(dropped=1)
    blue.answer = lambda body: (b"x" * (BODY_MAX + 1), {})
    assert len(send([1.0]).content) == BODY_MAX + 1
    compared.expect(dropped=1)
    assert green.scored() == []
    blue.answer = model()
    # Bodies that Envoy holds first, since they are long or their length is not announced.
    long = [1.0] * 10_000
    send(long)
    compared.expect(compared=1)
    body = json.dumps({"inputs": [1.0]}).encode()
    assert client.post(INFER, headers=BEARER, content=iter([body])).is_success
    compared.expect(compared=1)
    compared.agent.put_in_force(compared.table(0))
    send([1.0])
    compared.agent.put_in_force(compared.table(100))
    send([1.0])
    compared.expect(compared=1)


def test_requests_go_on_without_the_agent(compared: Compared) -> None:
    """Also one that hangs: it takes none of the copies, which are larger than any buffer."""
    blue, send, agent = compared.blue, compared.send, compared.agent
    send([1.0])
    compared.expect(compared=1)
    processes.send_signal(processes.of(agent.pid), signal.SIGSTOP)
    blue.answer = lambda body: (b"x" * 20_000_000, {})
    with ThreadPoolExecutor(4) as pool:
        assert {len(answer.content) for answer in pool.map(send, [[1.0] * 10_000] * 4)} == {20_000_000}
    blue.answer = model()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(send, [[1.0] * 10_000] * 100))
    processes.send_signal(processes.of(agent.pid), signal.SIGCONT)
    agent.kill()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(send, [[1.0]] * 100))
    before = compared.counts()
    agent.start()

    def counted_again() -> bool:
        send([1.0])
        return compared.counts().get("compared", 0) > before.get("compared", 0)

    eventually(counted_again)


def test_a_part_is_compared_and_the_time_is_the_deployment_s(compared: Compared) -> None:
    wanted = compared.table(10)
    route = wanted.routes[0]
    quick = tuple(replace(one, timeout_s=0.2) if one.name == "green" else one for one in route.targets)
    compared.agent.put_in_force(replace(wanted, routes=(replace(route, targets=quick),)))
    compared.blue.release()
    while not compared.green.scored():
        compared.send([1.0], INFER.replace("/m/", "/held/"))
    assert len(compared.blue.scored()) > len(compared.green.scored())
    eventually(lambda: compared.counts().get("failed", 0) >= 1)
    found = compared.counts()
    assert found["failed"] == found["compared"] == found["differ"] == found["disagree"]


def test_a_token_s_requests_are_compared_too(compared: Compared) -> None:
    """Their filters are chosen before their route is."""
    wanted = compared.table()
    route = replace(wanted.routes[0], credentials=(), auth="aml_token", binding=binding("images"))
    compared.agent.put_in_force(replace(wanted, routes=(route,), issuers=ISSUERS))
    compared.send([1.0], authorization=f"Bearer {mint('images')}")
    compared.expect(compared=1)
    assert "authorization" not in compared.green.scored()[-1]["headers"]
