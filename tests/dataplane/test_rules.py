"""What a request meets, row by row: code, error code, headers. Through a real Envoy that a real
agent configured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from amphitrite.dataplane.envoy.filters.bodiless_requests import MAX_BYTES

from .agents import BEARER, RunningAgent
from .refusals import code_and_message
from .rule_table import MAX_BODY, MAX_UNSIZED_BODY
from .upstream import Upstream

pytestmark = pytest.mark.serving

PIN = "azureml-model-deployment"
BLUE = {**BEARER, PIN: "blue"}
SIZES = f"{MAX_BODY + 1} bytes; at most {MAX_BODY}"
INFER = "/endpoints/images/v2/models/m/infer"
Rules = tuple[RunningAgent, dict[str, Upstream]]


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    path: str
    status: int
    code: str | None = None  #: error code of a body of ours
    headers: Mapping[str, str] = field(default_factory=lambda: BEARER)
    method: str = "POST"
    body: bytes = b"{}"
    want: Mapping[str, str] = field(default_factory=dict)  #: headers of the answer
    says: str = ""  #: part of the message


ROWS = [
    Row("key", INFER, 200),
    Row("second key", INFER, 200, headers={"authorization": "Bearer secondary-key"}),
    Row("pinned", INFER, 200, headers=BLUE, want={PIN: "blue"}),
    Row("pinned in other case", INFER, 200, headers={**BEARER, PIN: "GREEN"}, want={PIN: "green"}),
    Row("pinned without traffic", "/endpoints/idle/v2/models/m/infer", 200, headers=BLUE, want={PIN: "blue"}),
    Row("pinned to nothing", INFER, 404, "DeploymentNotFound", {**BEARER, PIN: 'x"%s'}, says="'x\"%s'"),
    Row("pinned, nothing serves", INFER, 503, "DeploymentNotReady", {**BEARER, PIN: "absent"}, says="'absent'"),
    Row("no key", INFER, 401, "AuthenticationFailed", {}, want={"www-authenticate": "Bearer"}),
    Row("empty key", INFER, 401, "AuthenticationFailed", {"authorization": ""}),
    Row("wrong key", INFER, 401, "AuthenticationFailed", {"authorization": "Bearer nope"}),
    Row("longer key", INFER, 401, "AuthenticationFailed", {"authorization": "Bearer primary-key2"}),
    Row("another endpoint's key", INFER, 401, "AuthenticationFailed", {"authorization": "Bearer other-key"}),
    Row("key without scheme", INFER, 401, "AuthenticationFailed", {"authorization": "primary-key"}),
    Row("scheme in lower case", INFER, 200, headers={"authorization": "bearer primary-key"}),
    Row("scheme in upper case", INFER, 200, headers={"authorization": "BEARER secondary-key"}),
    Row("two spaces", INFER, 200, headers={"authorization": "Bearer  primary-key"}),
    Row("key in other case", INFER, 401, "AuthenticationFailed", {"authorization": "bearer Primary-key"}),
    Row("two schemes", INFER, 401, "AuthenticationFailed", {"authorization": "Bearer bearer primary-key"}),
    Row("a key with more behind it", INFER, 401, "AuthenticationFailed", {"authorization": "bearer primary-key x"}),
    Row("both keys in one", INFER, 401, "AuthenticationFailed", {"authorization": "Bearer primary-key, secondary-key"}),
    Row("no key is accepted", "/endpoints/closed/v2", 401, "AuthenticationFailed", {"authorization": "Bearer x"}),
    Row("401 before 404", "/endpoints/images/", 401, "AuthenticationFailed", {PIN: "nope"}),
    Row("401 before 403", "/endpoints/images/v2/repository/index", 401, "AuthenticationFailed", {}),
    Row("unknown endpoint", "/endpoints/unknown/v2/models/m/infer", 404, "ResourceNotFound", {}),
    Row("outside", "/v2/models/m/infer", 404, "ResourceNotFound"),
    Row("outside, with an endpoint's name", "/other/images/v2", 404, "ResourceNotFound", {}),
    Row("nothing", "/", 404, "ResourceNotFound", {}),
    Row("no traffic", "/endpoints/idle/v2/models/m/infer", 404, "NoTraffic", says="'idle'"),
    Row("score", "/endpoints/images/", 200, headers=BLUE, want={PIN: "blue"}),
    Row("score without slash", "/endpoints/images", 200, headers=BLUE),
    Row("score, two models", "/endpoints/images/", 404, "NoScoringModel", {**BEARER, PIN: "green"}, says="2 models"),
    Row("score by GET", "/endpoints/images/", 405, "MethodNotAllowed", method="GET", want={"allow": "POST"}),
    Row("ready", "/endpoints/images/v2/health/ready", 200, method="GET"),
    Row("largest body", INFER, 200, headers=BLUE, body=b"x" * MAX_BODY),
    Row("body too large", INFER, 413, "RequestTooLarge", body=b"x" * (MAX_BODY + 1), says=SIZES),
    Row("no healthy instance", "/endpoints/ill/v2", 503, "NoHealthyInstance", want={"retry-after": "1", PIN: "ill"}),
    Row("timeout", "/endpoints/solo/v2/models/held/infer", 408, "RequestTimeout", says="500 ms"),
    Row("lost", "/endpoints/solo/v2/models/vanishes/infer", 503, "InstanceConnectionLost", want={"retry-after": "1"}),
    Row("headers too large", INFER, 431, "HeadersTooLarge", {**BEARER, "x-big": "x" * 70_000}),
    Row("health", "/healthz", 200, headers={}, method="GET"),
    Row("health with a query", "/healthz?x=1", 404, "ResourceNotFound", {}, method="GET"),
    Row("below health", "/healthz/", 404, "ResourceNotFound", {}, method="GET"),
    Row("health in other case", "/Healthz", 404, "ResourceNotFound", {}, method="GET"),
    Row("health of an endpoint", "/endpoints/images/healthz", 401, "AuthenticationFailed", {}, method="GET"),
    Row("a model by the name of trace", "/endpoints/images/v2/models/trace/infer", 200, headers=BLUE),
]  # fmt: skip

#: How a refused path may be written otherwise, and what else is refused, is
#: ``test_nobody_gets_in``'s.
ROWS += [
    Row("POST to what is refused", "/endpoints/images/v2/repository/index", 403, "Forbidden"),
    Row("GET of what is refused", "/endpoints/images/v2/logging", 403, "Forbidden", method="GET"),
    Row("dots on the way to it", "/endpoints/images/v2/x/../repository/index", 403, "Forbidden"),
    Row("an encoded letter in it", "/endpoints/images/v2/%72epository/index", 403, "Forbidden"),
    Row("an encoded slash in it", "/endpoints/images/v2%2frepository/index", 400, "BadRequest"),
    Row("an encoded backslash in it", "/endpoints/images/v2%5Crepository", 400, "BadRequest"),
]


#: What a model server gets of a body that was sent without a length, or why it gets nothing.
UNSIZED = [
    ("POST", MAX_UNSIZED_BODY, 200, None),
    ("POST", MAX_UNSIZED_BODY + 1, 413, f"at most {MAX_UNSIZED_BODY} bytes (max_unsized_body_bytes)"),
    ("GET", 2, 200, None),
    ("GET", MAX_BYTES + 1, 413, f"more than {MAX_BYTES} bytes"),
]


@pytest.mark.parametrize("path", [INFER, "/endpoints/images/"])
@pytest.mark.parametrize(("method", "size", "status", "says"), UNSIZED)
def test_a_body_of_unknown_length(
    method: str, size: int, status: int, says: str | None, path: str, scoring: RunningAgent, rules: Rules
) -> None:
    if method == "GET" and path != INFER:
        pytest.skip("no GET reaches a model server there")
    answer = scoring.client.request(method, path, headers=BLUE, content=(b"x" * part for part in (1, size - 1)))
    assert answer.status_code == status, answer.text
    if says is not None:
        code, message = code_and_message(answer)
        assert code == "RequestTooLarge" and says in message
        assert rules[1]["blue"].scored() == []
        return
    [seen] = rules[1]["blue"].scored()
    assert (seen["body"], seen["headers"].get("transfer-encoding")) == (size, None)
    assert seen["headers"]["content-length"] == str(size)


def test_a_compressed_body_of_unknown_length(scoring: RunningAgent, rules: Rules) -> None:
    """Only a deployment with sequences must read it."""
    headers = {**BLUE, "content-encoding": "gzip"}
    answer = scoring.client.request("POST", INFER, headers=headers, content=iter((b"compressed",)))
    assert answer.status_code == 200, answer.text
    [seen] = rules[1]["blue"].scored()
    assert (seen["body"], seen["headers"]["content-encoding"]) == (len(b"compressed"), "gzip")


def test_a_post_without_any_body(scoring: RunningAgent, rules: Rules) -> None:
    assert scoring.client.request("POST", INFER, headers=BLUE, content=iter(())).status_code == 200
    [seen] = rules[1]["blue"].scored()
    assert (seen["body"], seen["headers"]["content-length"]) == (0, "0")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_rule(row: Row, scoring: RunningAgent) -> None:
    headers = {"x-ms-client-request-id": "mine", **row.headers}
    # As raw bytes: the client would tidy the path up before it sends it.
    extensions = {"target": row.path.encode()}
    answer = scoring.client.request(row.method, "/", headers=headers, content=row.body, extensions=extensions)
    assert answer.status_code == row.status, answer.text
    assert len(answer.headers["x-request-id"]) == 36
    if (
        row.status != 431 and row.path != "/healthz"
    ):  # what was too large to read, and what no route sees, is not echoed
        assert answer.headers["x-ms-client-request-id"] == "mine"
    assert answer.headers["server"] == "amphitrite"
    assert {k: answer.headers.get(k) for k in row.want} == row.want
    if row.status == 401:
        assert PIN not in answer.headers
    if row.code is not None:
        assert answer.headers["content-type"] == "application/json"
        # What was too large to read has no path.
        code, message = code_and_message(answer, "" if row.status == 431 else row.path)
        assert code == row.code
        assert row.says in message
