"""What Triton's own client makes of a refusal: its exception, with our text. Real client and Envoy.

``test_rules`` has the bodies.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import pytest
import tritonclient.http
from tritonclient.utils import InferenceServerException

from ..waiting import wait_until
from .agents import BEARER, RunningAgent
from .rule_table import MAX_BODY
from .upstream import Upstream

pytestmark = pytest.mark.serving
Rules = tuple[RunningAgent, dict[str, Upstream]]
Client = tritonclient.http.InferenceServerClient

PIN = "azureml-model-deployment"
#: FP32 values of the only input; more than a body may hold.
FEW, MANY = 4, MAX_BODY // 4 + 1


@dataclass(frozen=True, slots=True)
class Row:
    status: str
    code: str
    says: str
    endpoint: str = "images"
    model: str = "m"
    headers: Mapping[str, str] = field(default_factory=lambda: BEARER)
    values: int = FEW


ROWS = [
    Row("401", "AuthenticationFailed", "none of this endpoint's", headers={"authorization": "Bearer nope"}),
    Row("401", "AuthenticationFailed", "the request has no key", headers={}),
    Row("401", "AuthenticationFailed", "the request has no token", endpoint="tokens"),
    Row("404", "ResourceNotFound", "there is no endpoint at this address", endpoint="missing"),
    Row("404", "DeploymentNotFound", "has no deployment 'nope'", headers={**BEARER, PIN: "nope"}),
    Row("404", "NoTraffic", "no deployment of endpoint 'idle' has traffic", endpoint="idle"),
    Row("408", "RequestTimeout", "did not answer within 500 ms", endpoint="solo", model="held"),
    Row("413", "RequestTooLarge", f"at most {MAX_BODY} are accepted", values=MANY),
    Row("503", "NoHealthyInstance", "has no healthy instance", endpoint="ill"),
    Row("503", "DeploymentNotReady", "has no instance that is ready", headers={**BEARER, PIN: "absent"}),
    Row("503", "InstanceConnectionLost", "was lost before it answered", endpoint="solo", model="vanishes"),
]


@pytest.fixture
def connect(scoring: RunningAgent) -> Iterator[Callable[[str], Client]]:
    trust = ssl.create_default_context(cafile=str(scoring.certificate))
    made: list[Client] = []

    def client(path: str) -> Client:
        address = f"127.0.0.1:{scoring.port}{path}"
        made.append(Client(address, ssl=True, ssl_context_factory=lambda: trust, network_timeout=30))
        return made[-1]

    yield client
    for one in made:
        one.close()


def infer(client: Client, row: Row) -> None:
    tensor = tritonclient.http.InferInput("x", [row.values], "FP32")
    tensor.set_data_from_numpy(np.zeros(row.values, np.float32))
    client.infer(row.model, [tensor], headers=dict(row.headers))


def told(error: InferenceServerException, row: Row) -> None:
    assert error.status() == row.status
    text = error.message()
    assert text.startswith(f"{row.code}: ") and row.says in text and "(request id " in text
    assert str(error) == f"[{row.status}] {text}"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.code} {row.says}")
def test_a_refusal_is_its_exception(row: Row, connect: Callable[[str], Client]) -> None:
    with pytest.raises(InferenceServerException) as refused:
        infer(connect(f"/endpoints/{row.endpoint}"), row)
    told(refused.value, row)


def test_past_the_bound(connect: Callable[[str], Client], scoring: RunningAgent, rules: Rules) -> None:
    held, solo, client = "/endpoints/solo/v2/models/held/infer", rules[1]["solo"], connect("/endpoints/solo")

    def refused() -> InferenceServerException | None:
        """What a third request gets. None if it came late: both places are free after 0.5 s."""
        solo.hold()
        with ThreadPoolExecutor(2) as pool:
            try:
                for _ in [pool.submit(scoring.client.post, held, headers=BEARER) for _ in range(2)]:
                    solo.arrived.acquire(timeout=30)
                infer(client, Row("429", "TooManyRequests", ""))
            except InferenceServerException as refusal:
                return refusal
            finally:
                solo.release()
        return None

    told(
        wait_until(refused, "a third request is refused"),
        Row("429", "TooManyRequests", "'solo' has 2 requests in flight"),
    )


def test_what_cannot_be_reached(connect: Callable[[str], Client]) -> None:
    with pytest.raises(InferenceServerException) as refused:
        connect("/endpoints/images").get_model_repository_index(headers=dict(BEARER))
    told(refused.value, Row("403", "Forbidden", "cannot be reached from outside"))


def test_an_address_without_an_endpoint(connect: Callable[[str], Client]) -> None:
    with pytest.raises(InferenceServerException) as refused:
        connect("").get_server_metadata(headers=dict(BEARER))
    told(refused.value, Row("404", "ResourceNotFound", "/endpoints/<endpoint>/"))
