"""Scoring as the contract says it: who is let in, who serves, what each refusal looks like."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from .models import INFER, REQUEST
from .product import Product

pytestmark = pytest.mark.serving


def outputs(body: bytes) -> list[float]:
    found: list[float] = json.loads(body)["outputs"][0]["data"]
    return found


@contextmanager
def traffic(product: Product, **shares: int) -> Iterator[None]:
    """Another split for a while."""
    product.traffic(**shares)
    try:
        yield
    finally:
        product.traffic(blue=100, green=0)


def test_either_key_opens_the_endpoint(shared: Product) -> None:
    keys = shared.json("online-endpoint", "get-credentials", "-n", "cats")
    assert set(keys) == {"primaryKey", "secondaryKey"}
    for key in keys.values():
        answer = shared.request(INFER, key=key, body=REQUEST)
        assert (answer.status, answer.deployment) == (200, "blue")
        assert outputs(answer.body) == [2, 3, 4, 5]
        assert answer.headers["x-request-id"]


@dataclass(frozen=True)
class Row:
    """``key``: of ``own`` or of the ``other`` endpoint."""

    name: str
    path: str
    status: int
    code: str
    says: str
    key: str = "own"


#: That the parts are wired together. What each refusal looks like is ``dataplane/test_rules.py``'s.
ROWS = [
    Row("another endpoint's key", INFER, 401, "AuthenticationFailed", "", key="other"),
    Row("no traffic", "/endpoints/idle/v2/models/tiny/infer", 404, "NoTraffic", "idle", key="other"),
    Row("loading models, hidden", "/endpoints/cats/v2/models/../repository/index", 403, "Forbidden", ""),
]


@pytest.fixture(scope="module")
def other_key(shared: Product) -> str:
    """The key of a second endpoint that has no deployment."""
    shared.endpoint("idle")
    return shared.keys("idle")[0]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_refusals(shared: Product, other_key: str, row: Row) -> None:
    key = {"own": shared.keys()[0], "other": other_key}[row.key]
    answer = shared.request(row.path, key=key, body=REQUEST)
    assert answer.status == row.status, answer
    assert answer.headers["content-type"].startswith("application/json")
    assert answer.error["code"] == row.code
    assert row.says in answer.error["message"]
    assert answer.error["message"]
    assert answer.headers["x-request-id"]


def test_a_request_is_pinned_at_zero_percent(shared: Product) -> None:
    headers = {"azureml-model-deployment": "green"}
    answer = shared.request(INFER, key=shared.keys()[0], body=REQUEST, headers=headers)
    assert (answer.status, answer.deployment, outputs(answer.body)) == (200, "green", [3, 4, 5, 6])


def test_all_traffic_moves(shared: Product) -> None:
    with traffic(shared, blue=0, green=100):
        answers = [shared.request(INFER, key=shared.keys()[0], body=REQUEST) for _ in range(5)]
    assert {a.deployment for a in answers} == {"green"}


def test_half_and_half_over_a_thousand_requests(shared: Product) -> None:
    with traffic(shared, blue=50, green=50):
        key, connection, seen = shared.keys()[0], shared.connection(), Counter[str | None]()
        for _ in range(1000):
            connection.request("POST", INFER, body=REQUEST, headers={"Authorization": f"Bearer {key}"})
            answer = connection.getresponse()
            seen[answer.headers["azureml-model-deployment"]] += 1
            assert answer.status == 200, answer.read()
            answer.read()
        connection.close()
    # 1,000 fair coins: more than 80 from the middle happens once in two million runs.
    assert set(seen) == {"blue", "green"}
    assert abs(seen["blue"] - 500) < 80


def test_a_post_to_the_scoring_address_infers_the_only_model(shared: Product) -> None:
    for path in ("/endpoints/cats/", "/endpoints/cats"):
        answer = shared.request(path, key=shared.keys()[0], body=REQUEST)
        assert (answer.status, outputs(answer.body)) == (200, [2, 3, 4, 5])


def test_invoke_prints_what_the_model_says(shared: Product) -> None:
    shared.file("request.json", REQUEST.decode())
    text = shared.run(
        "online-endpoint", "invoke", "-n", "cats", "-r", "request.json", "-d", "green", "-o", "tsv"
    ).stdout
    assert outputs(text.encode()) == [3, 4, 5, 6]


def test_a_bad_request_shows_tritons_own_words(shared: Product) -> None:
    answer = shared.request(INFER, key=shared.keys()[0], body=b'{"inputs": []}')
    assert answer.status == 424
    assert answer.headers["ms-azureml-model-error-statuscode"] == "400"
    assert "X" in answer.body.decode()


def test_a_client_request_id_is_kept(shared: Product) -> None:
    answer = shared.request(
        INFER,
        key=shared.keys()[0],
        body=REQUEST,
        headers={"x-ms-client-request-id": "mine-1", "x-request-id": "forged"},
    )
    assert answer.headers["x-ms-client-request-id"] == "mine-1"
    assert answer.headers["x-request-id"] != "forged"


def test_a_regenerated_key_shuts_out_the_old_one_only(shared: Product) -> None:
    before = shared.keys()
    shared.run("online-endpoint", "regenerate-keys", "-n", "cats", "--key-type", "primary")
    after = shared.keys()
    assert after[0] != before[0]
    assert after[1] == before[1]
    found = [shared.request(INFER, key=key, body=REQUEST).status for key in (before[0], after[0], after[1])]
    assert found == [401, 200, 200]


def test_a_deployment_with_traffic_is_not_deleted(shared: Product) -> None:
    refused = shared.run("online-deployment", "delete", "-n", "blue", "-e", "cats", "-y", check=False)
    assert refused.returncode == 1
    assert "traffic" in refused.stderr
    assert shared.request(INFER, key=shared.keys()[0], body=REQUEST).status == 200


def test_show_says_what_serves(shared: Product) -> None:
    shown = shared.json("online-deployment", "show", "-n", "blue", "-e", "cats")
    assert shown["provisioning_state"] == "Succeeded"
    assert "Triton" in shown["status"]["engine"]
    assert shown["status"]["ready_instances"] == 1
    endpoint = shared.json("online-endpoint", "show", "-n", "cats")
    assert endpoint["traffic"] == {"blue": 100, "green": 0}
    assert endpoint["scoring_uri"] == f"https://127.0.0.1:{shared.scoring_port}/endpoints/cats/"


def test_a_gpu_instance_type_without_a_gpu_says_that_it_runs_on_the_cpu(shared: Product) -> None:
    shared.deploy("gpu", "tiny:1", instance_type="Standard_NC6s_v3")
    shown = shared.json("online-deployment", "show", "-n", "gpu", "-e", "cats")
    logs = shared.run("online-deployment", "get-logs", "-n", "gpu", "-e", "cats", "-o", "tsv").stdout
    shared.run("online-deployment", "delete", "-n", "gpu", "-e", "cats", "-y")
    if "CPU" not in shown["status"]["engine"]:
        assert "GPU" in shown["status"]["engine"], "a machine with a GPU uses it"
        return
    [note] = shown["status"]["notes"]
    assert "Standard_NC6s_v3" in note and "CPU" in note
    assert note in shown["status"]["message"]
    assert note in logs
