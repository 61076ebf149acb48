"""The numbers of the real Envoy against what its client has seen."""

from __future__ import annotations

import signal
import socket
import ssl
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from amphitrite.dataplane.machine import processes
from amphitrite.dataplane.metrics.counters import Totals, Use, totals_from_json
from amphitrite.dataplane.table.routing_table import Route, RoutingTable, Secret, Target

from .agents import BEARER, KEY, RunningAgent, cluster, eventually
from .conftest import MakeAgent
from .upstream import Upstream

#: Beside the key that all use.
SECOND = Secret("second-key")
PATH = "/endpoints/images/v2/models/m/infer"
DEPLOYMENT = "azureml-model-deployment"


@pytest.mark.serving
def test_every_outcome_is_counted_once_and_goes_on_after_a_new_envoy(make_agent: MakeAgent) -> None:
    with ExitStack() as stack:
        blue, green, shadow = (stack.enter_context(Upstream(name)) for name in ("blue", "green", "shadow"))
        shadow.release()
        agent = make_agent()
        agent.options = ("--metrics-every-s", "0.3")
        agent.start()
        agent.put_in_force(_table(blue, green, shadow))
        sent = _Client(agent)
        _one_of_each(sent, blue, green)
        totals = _counted(agent, sent)
        answered = sum(n for (series, *_), n in sent.seen.items() if series == ("images", "blue"))
        fields = totals.counters["images", "blue"]
        assert sum(n for name, n in fields.items() if name.startswith("le/")) == answered
        assert fields["microseconds"] >= 290_000  # One of them ran into its time of 0.3 s; Envoy's sum is not exact.
        assert fields["received"] == sent.bodies
        # By default no request that may have run is sent again, but what is only asked for is.
        assert totals.counters["images", "green"].get("retries", 0) >= 1
        copies = Counter({n: v for n, v in totals.counters["images", "shadow"].items() if n.startswith("copies/")})
        assert copies.total() == sum(1 for request in shadow.scored())
        assert set(copies) == {"copies/200", "copies/400"}
        assert not totals.in_flight.get(("images", "blue"))
        # A wrong key is no use of any.
        first_use = ("images", Secret(KEY).fingerprint())
        assert set(totals.used) == {first_use}

        first = agent.envoy()
        processes.send_signal(first, signal.SIGKILL)
        eventually(lambda: agent.envoy() != first and agent.health() == 200)
        _one_of_each(sent, blue, green)
        _counted(agent, sent)
        sent.send("images", "blue", 200, "", authorization=f"Bearer {SECOND.reveal()}")
        before = totals.used[first_use]
        totals = _used(agent, {first_use, ("images", SECOND.fingerprint())})
        assert before < totals.used[first_use] <= totals.used["images", SECOND.fingerprint()]

        # The agent alone, too: a new one goes on with the Envoy that it finds, and with the sum.
        agent.kill()
        sent.send("images", "blue", 200, "")
        agent.start()
        _counted(agent, sent)
        assert set(_used(agent, totals.used).used) == set(totals.used)


def _table(blue: Upstream, green: Upstream, shadow: Upstream) -> RoutingTable:
    clusters = (cluster("c1", [green], max_requests=1), cluster("cb", [blue]), cluster("cg", [green]),
                cluster("cs", [shadow]))  # fmt: skip
    targets = (
        Target("absent", None, 5.0),
        Target("blue", "cb", 0.3, "/v2/models/m/infer"),
        Target("bounded", "c1", 30.0),
        Target("green", "cg", 5.0),
        Target("shadow", "cs", 5.0),
    )
    images = Route("images", (Secret(KEY), SECOND), targets, (("blue", 100),), (("shadow", 100),))
    return RoutingTable(1, (Route("idle", (Secret(KEY),), ()), images), clusters, max_body_bytes=1000)


class _Client:
    """Sends requests and keeps what their outcome must be counted as: (series, code, reason) -> how
    often."""

    def __init__(self, agent: RunningAgent) -> None:
        self._agent = agent
        self.seen: Counter[tuple[tuple[str, str], int, str]] = Counter()
        self.failed: Counter[str] = Counter()
        self.bodies = 0

    def send(
        self,
        endpoint: str,
        deployment: str,
        code: int,
        reason: str,
        *,
        address: str = PATH,
        method: str = "POST",
        size: int = 14,
        **headers: str,
    ) -> None:
        body = b"x" * size if method == "POST" else None
        answer = self._agent.client.request(method, address, headers={**BEARER, **headers}, content=body)
        assert answer.status_code == code, answer.text
        if deployment == "blue" and body:
            self.bodies += len(body)
        self.count(endpoint, deployment, code, reason, answer.headers.get("ms-azureml-model-error-statuscode"))

    @contextmanager
    def begin(self, address: str, headers: dict[str, str]) -> Iterator[None]:
        """A request whose answer nobody waits for."""
        with socket.create_connection(("127.0.0.1", self._agent.port)) as plain:
            context = ssl.create_default_context(cafile=str(self._agent.certificate))
            with context.wrap_socket(plain, server_hostname="127.0.0.1") as connection:
                lines = [f"GET {address} HTTP/1.1", "host: x", *(f"{k}: {v}" for k, v in {**BEARER, **headers}.items())]
                connection.sendall("\r\n".join([*lines, "", ""]).encode())
                yield

    def count(self, endpoint: str, deployment: str, code: int, reason: str, model_code: str | None = None) -> None:
        self.seen[(endpoint, deployment), code, reason] += 1
        if model_code is not None:
            self.failed[model_code] += 1


def _one_of_each(sent: _Client, blue: Upstream, green: Upstream) -> None:
    for _ in range(3):
        sent.send("images", "blue", 200, "")
    sent.send("images", "green", 200, "", **{DEPLOYMENT: "green"})
    sent.send("images", "blue", 424, "ModelError", address="/endpoints/images/v2/models/fails/infer")
    sent.send("images", "", 401, "AuthenticationFailed", authorization="Bearer wrong")
    sent.send("images", "", 403, "Forbidden", address="/endpoints/images/v2/repository/index")
    sent.send("images", "", 404, "DeploymentNotFound", **{DEPLOYMENT: "what-a-client-says"})
    sent.send("images", "absent", 503, "DeploymentNotReady", **{DEPLOYMENT: "absent"})
    sent.send("images", "green", 404, "NoScoringModel", address="/endpoints/images/", **{DEPLOYMENT: "green"})
    sent.send("idle", "", 404, "NoTraffic", address="/endpoints/idle/v2/models/m/infer")
    for name in ("nobody", "what-a-client-says"):
        sent.send("", "", 404, "ResourceNotFound", address=f"/endpoints/{name}/v2")
    sent.send("images", "", 413, "RequestTooLarge", size=1001)
    _bounded_and_left(sent, green)
    blue.hold()
    sent.send("images", "blue", 408, "RequestTimeout", address="/endpoints/images/v2/models/held/infer")
    blue.release()
    sent.send("images", "green", 503, "InstanceConnectionLost", method="GET", address="/endpoints/images/v2/vanishes/x",
              **{DEPLOYMENT: "green"})  # fmt: skip


def _bounded_and_left(sent: _Client, green: Upstream) -> None:
    """One request fills the bound, another is refused for it, and the client of the first
    leaves."""
    green.hold()
    bounded = {DEPLOYMENT: "bounded"}
    with sent.begin("/endpoints/images/v2/held/x", bounded):
        assert green.arrived.acquire(timeout=60)
        sent.send("images", "bounded", 429, "TooManyRequests", **bounded)
    sent.count("images", "bounded", 0, "ClientClosedRequest")
    green.release()


def _counted(agent: RunningAgent, sent: _Client) -> Totals:
    """The numbers as soon as they are what the client has seen; Envoy's own are some seconds
    behind."""
    wanted = {(*series, f"requests/{code}/{reason}"): n for (series, code, reason), n in sent.seen.items()}

    def agree(metrics: dict[str, Any]) -> bool:
        found = _outcomes(metrics)
        failures = {
            name.removeprefix("model/"): n
            for deployments in metrics["counters"].values()
            for fields in deployments.values()
            for name, n in fields.items()
            if name.startswith("model/")
        }
        timed = sum(n for name, n in metrics["counters"].get("images", {}).get("blue", {}).items() if "le/" in name)
        blue = sum(n for (endpoint, deployment, _), n in wanted.items() if (endpoint, deployment) == ("images", "blue"))
        return (found, failures, timed) == (wanted, sent.failed, blue)

    return totals_from_json(agent.control_plane.wait_for_metrics(agree))


def _used(agent: RunningAgent, credentials: Collection[Use]) -> Totals:
    return totals_from_json(
        agent.control_plane.wait_for_metrics(lambda metrics: {*totals_from_json(metrics).used} == {*credentials})
    )


def _outcomes(metrics: dict[str, Any]) -> dict[tuple[str, str, str], int]:
    return {
        (endpoint, deployment, name): n
        for endpoint, deployments in metrics["counters"].items()
        for deployment, fields in deployments.items()
        for name, n in fields.items()
        if name.startswith("requests/")
    }
