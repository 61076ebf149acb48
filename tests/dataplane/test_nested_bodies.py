"""JSON that would end Triton by its depth is refused; all other bodies arrive as they are.

What Triton makes of either is ``system/test_deadly_requests.py``'s.
"""

from __future__ import annotations

import hashlib
import json
import random

import pytest

from amphitrite.dataplane.envoy.filters.nested_bodies import DEPTH_MAX, LOOKED_AT_BYTES

from .agents import BEARER, INFER, RunningAgent
from .minting import mint
from .rule_table import MAX_BODY
from .test_abuse import connected
from .upstream import Upstream

pytestmark = pytest.mark.serving
Rules = tuple[RunningAgent, dict[str, Upstream]]
#: Makes a body long enough to be looked at.
LONG = '"' + "x" * LOOKED_AT_BYTES + '"'
JSON_LENGTH = "inference-header-content-length"


def arrays(depth: int, inner: str = "") -> str:
    return "[" * depth + inner + "]" * depth


def objects(depth: int, inner: str) -> str:
    return '{"a":' * depth + inner + "}" * depth


def mixed(depth: int) -> str:
    """Each level in another way, with texts that look like the end of it."""
    parts = ('{"]}]}":', '["]]}}", ', '[0.5, {"\\\\": 1}, ', '{"\\"}]": ')
    return "".join(parts[level % len(parts)] for level in range(depth)) + LONG


DEEP = arrays(100_000).encode()
TAIL = bytes(random.Random(1).choices(b'[{["\\', k=200_000))

PASSING: dict[str, tuple[bytes, dict[str, str]]] = {
    "as deep as may be": (arrays(DEPTH_MAX, LONG).encode(), {}),
    "too deep, but too short to matter": (arrays((LOOKED_AT_BYTES - 1) // 2).encode(), {}),
    "many beside each other": (f"[{', '.join(['[1, 2]'] * 100_000)}]".encode(), {}),
    "brackets in a text": (json.dumps({"a": "[{" * 100_000}).encode(), {}),
    "after an escaped quote": (json.dumps({"a": '"\\' * 99_999 + "[" * 100_000}).encode(), {}),
    "numbers": (json.dumps([n / 7 for n in range(90_000)]).encode(), {}),
    "tensors behind the JSON": (b"[]" + TAIL, {JSON_LENGTH: "2"}),
    "compressed": (TAIL, {"content-encoding": "gzip"}),
}

TOO_DEEP: dict[str, tuple[bytes, dict[str, str]]] = {
    "arrays": (arrays(500_000).encode(), {}),
    "never closed": (b"[" * 1_000_000, {}),
    "objects": (objects(DEPTH_MAX + 1, LONG).encode(), {}),
    "mixed": (mixed(DEPTH_MAX + 1).encode(), {}),
    "at the end": (f"[{LONG}, {arrays(DEPTH_MAX)}]".encode(), {}),
    "behind a length that is none": (arrays(100_000).encode(), {JSON_LENGTH: "2x"}),
    "behind two lengths": (arrays(100_000).encode(), {JSON_LENGTH: "2, 2"}),
    "with tensors behind it": (arrays(100_000).encode() + TAIL, {JSON_LENGTH: "200000"}),
}


def received(rules: Rules) -> dict[str, object]:
    found: dict[str, object] = rules[1]["blue"].scored()[-1]
    return found


def ask(scoring: RunningAgent, body: bytes, headers: dict[str, str], path: str = INFER) -> int:
    sent = {**BEARER, "azureml-model-deployment": "blue", "content-type": "application/json", **headers}
    return scoring.client.post(path, content=body, headers=sent).status_code


@pytest.mark.parametrize("path", [INFER, "/endpoints/images"], ids=["infer", "address"])
@pytest.mark.parametrize("name", PASSING)
def test_what_is_not_too_deep_arrives_as_it_is(name: str, path: str, scoring: RunningAgent, rules: Rules) -> None:
    body, headers = PASSING[name]
    assert len(body) <= MAX_BODY
    assert ask(scoring, body, headers, path) == 200
    assert received(rules)["digest"] == hashlib.sha256(body).hexdigest()


@pytest.mark.parametrize("path", [INFER, "/endpoints/images"], ids=["infer", "address"])
@pytest.mark.parametrize("name", TOO_DEEP)
def test_what_is_too_deep_is_refused(name: str, path: str, scoring: RunningAgent, rules: Rules) -> None:
    body, headers = TOO_DEEP[name]
    assert ask(scoring, body, headers, path) == 400
    assert not rules[1]["blue"].scored()


@pytest.mark.parametrize("path", ["generate", "generate_stream", "versions/1/generate?a=/infer", "infer/x"])
def test_only_infer_has_tensors_behind_its_json(path: str, scoring: RunningAgent, rules: Rules) -> None:
    assert ask(scoring, DEEP, {JSON_LENGTH: "2"}, f"/endpoints/images/v2/models/m/{path}") == 400
    assert not rules[1]["blue"].scored()


def test_the_refusal_says_why(scoring: RunningAgent) -> None:
    headers = {**BEARER, "azureml-model-deployment": "blue"}
    answer = scoring.client.post("/endpoints/images", content=DEEP, headers=headers).json()["error"]
    assert answer["code"] == "BadRequest"
    assert answer["message"] == "the JSON of the body is nested more than 1000 levels deep"
    below = scoring.client.post(INFER, content=DEEP, headers=headers).json()["error"]
    assert below.startswith("BadRequest: the JSON of the body is nested more than 1000 levels deep")


@pytest.mark.parametrize("endpoint", ["images", "tokens", "mirrored"])
@pytest.mark.parametrize("sized", [True, False], ids=["with a length", "without"])
def test_no_way_of_sending_it_is_forgotten(sized: bool, endpoint: str, scoring: RunningAgent, rules: Rules) -> None:
    shown = {"authorization": f"Bearer {mint()}"} if endpoint == "tokens" else BEARER
    content = DEEP if sized else iter([DEEP])
    path = INFER.replace("images", endpoint)
    assert scoring.client.post(path, content=content, headers=shown).status_code == 400
    assert not any(upstream.scored() for upstream in rules[1].values())


def test_nobody_without_a_key_has_a_body_held(scoring: RunningAgent) -> None:
    """The answer is there before the body."""
    head = f"POST {INFER} HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\n["
    with connected(scoring) as connection:
        connection.sendall(head.encode())
        assert connection.recv(65536).startswith(b"HTTP/1.1 401 ")


def test_a_users_own_server_gets_what_was_sent(scoring: RunningAgent, rules: Rules) -> None:
    headers = {**BEARER, "azureml-model-deployment": "green"}
    assert scoring.client.post("/endpoints/own/score", content=DEEP, headers=headers).status_code == 200
    assert rules[1]["green"].scored()[-1]["digest"] == hashlib.sha256(DEEP).hexdigest()
