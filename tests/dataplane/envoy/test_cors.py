"""What browsers are told, endpoint by endpoint. Real Envoy."""

from __future__ import annotations

import pytest

from ..agents import BEARER, RunningAgent
from ..minting import mint
from ..rule_table import ORIGIN

pytestmark = pytest.mark.serving

ALLOWED = "access-control-allow-origin"
ASKS = {"access-control-request-method": "POST", "access-control-request-headers": "authorization"}


def infer(endpoint: str) -> str:
    return f"/endpoints/{endpoint}/v2/models/m/infer"


@pytest.mark.parametrize(("endpoint", "origin"), [("images", ORIGIN), ("tokens", "https://anybody.example")])
def test_a_browser_may_ask_without_a_key(scoring: RunningAgent, endpoint: str, origin: str) -> None:
    answer = scoring.client.options(infer(endpoint), headers={"origin": origin, **ASKS})
    assert (answer.status_code, answer.headers[ALLOWED]) == (204, origin)
    assert "authorization" in answer.headers["access-control-allow-headers"]
    assert "azureml-model-deployment" in answer.headers["access-control-allow-headers"]
    assert answer.headers["access-control-allow-methods"] == "GET, POST"
    assert "access-control-allow-credentials" not in answer.headers


@pytest.mark.parametrize(
    ("endpoint", "origin"), [("images", "https://b.example"), ("images", f"{ORIGIN}.evil"), ("other", ORIGIN)]
)
def test_other_origins_and_other_endpoints_are_told_nothing(scoring: RunningAgent, endpoint: str, origin: str) -> None:
    answer = scoring.client.options(infer(endpoint), headers={"origin": origin, **ASKS})
    assert answer.status_code == 401
    assert ALLOWED not in answer.headers
    answer = scoring.client.post(infer(endpoint), headers={**BEARER, "origin": origin})
    assert ALLOWED not in answer.headers


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        (infer("images"), BEARER, 200),
        (infer("images"), {}, 401),
        ("/endpoints/images/v2/repository/index", BEARER, 403),
        (infer("images"), {**BEARER, "azureml-model-deployment": "nope"}, 404),
        (infer("images").replace("/m/", "/fails/"), {**BEARER, "azureml-model-deployment": "blue"}, 424),
        (infer("images"), {**BEARER, "azureml-model-deployment": "absent"}, 503),
        (infer("ill"), BEARER, 503),
        (infer("tokens"), {"authorization": f"Bearer {mint(endpoint='tokens')}"}, 200),
        (infer("tokens"), {"authorization": "Bearer a.b.c"}, 401),
    ],
)
def test_answers_of_all_kinds_can_be_read(
    scoring: RunningAgent, path: str, headers: dict[str, str], status: int
) -> None:
    answer = scoring.client.post(path, headers={**headers, "origin": ORIGIN})
    assert (answer.status_code, answer.headers[ALLOWED]) == (status, ORIGIN)
    exposed = answer.headers["access-control-expose-headers"]
    for name in ("azureml-model-deployment", "x-request-id", "ms-azureml-model-error-statuscode"):
        assert name in exposed
