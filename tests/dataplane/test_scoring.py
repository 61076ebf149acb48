"""What takes more than one request to see: shares, copies, bounds, what reaches the model server.
Real Envoy."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from .agents import BEARER, RunningAgent, eventually
from .refusals import code_and_message
from .rule_table import BLUE_PERCENT, MIRROR_PERCENT
from .upstream import FAILURES, Upstream

pytestmark = pytest.mark.serving

PIN = "azureml-model-deployment"
INFER = "/endpoints/images/v2/models/m/infer"
Rules = tuple[RunningAgent, dict[str, Upstream]]


def test_split_and_mirror_have_their_shares(scoring: RunningAgent, rules: Rules) -> None:
    served = Counter(scoring.client.post(INFER, headers=BEARER).headers[PIN] for _ in range(1000))
    # Six standard deviations of a binomial distribution.
    assert abs(served["blue"] - 10 * BLUE_PERCENT) < 90
    assert served.total() == 1000
    green = rules[1]["green"]
    eventually(lambda: len(green.scored()) > served["green"] + 400)
    assert abs(len(green.scored()) - served["green"] - 500) < 96


def test_pinned_requests_are_not_copied(scoring: RunningAgent, rules: Rules) -> None:
    for _ in range(50):
        scoring.client.post(INFER, headers={**BEARER, PIN: "blue"})
    assert len(rules[1]["blue"].scored()) == 50
    assert rules[1]["green"].scored() == []


def test_of_each_deployment_the_same_part_is_copied_to_each_mirror(scoring: RunningAgent, rules: Rules) -> None:
    path = "/endpoints/mirrored/v2/models/m/infer"
    answers = [scoring.client.post(path, headers=BEARER) for _ in range(800)]
    served = {a.headers["x-request-id"]: a.headers[PIN] for a in answers}
    grey, red = rules[1]["grey"], rules[1]["red"]
    eventually(lambda: len(red.scored()) == 800)
    assert Counter(served.values()) == Counter(copies(red, served))
    shares = Counter(copies(grey, served))
    for name, total in Counter(served.values()).items():
        want, spread = total * MIRROR_PERCENT / 100, (total * 0.24) ** 0.5
        assert abs(shares[name] - want) < 6 * spread, (name, shares, total)


def copies(mirror: Upstream, served: dict[str, str]) -> list[str]:
    """Which deployment served each request that was copied here."""
    return [served[seen["headers"]["x-request-id"]] for seen in mirror.scored()]


def test_what_the_model_server_sees(scoring: RunningAgent, rules: Rules) -> None:
    headers = {**BEARER, PIN: "blue", "x-ms-client-request-id": "mine", "x-envoy-upstream-rq-timeout-ms": "1"}
    headers["amphitrite-admin"] = "local"
    scoring.client.post("/endpoints/images/?a=b", headers=headers, content=b"12345")
    scoring.client.get("/endpoints/images/v2/models/m/config", headers=headers)
    score, below = rules[1]["blue"].scored()
    assert (score["method"], score["path"], score["body"]) == ("POST", "/v2/models/m/infer?a=b", 5)
    assert (below["method"], below["path"]) == ("GET", "/v2/models/m/config")
    assert {"authorization", "amphitrite-admin"}.isdisjoint(score["headers"])
    assert score["headers"]["x-ms-client-request-id"] == "mine"
    assert len(score["headers"]["x-request-id"]) == 36


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (["mine-1_2"], "mine-1_2"),
        (['my "own" id;\u00e9/%41'], "myownid41"),
        (["a\udce9\udcff b"], "ab"),
        (["x" * 41 + "/"], "x" * 40),
        (["one", "two"], "onetwo"),
        (["//"], None),
    ],
)
@pytest.mark.parametrize("path", [INFER, "/endpoints/images/v2/repository/index", "/endpoints/unknown/v2"])
def test_request_ids_follow_azures_rules(
    scoring: RunningAgent, rules: Rules, path: str, sent: list[str], kept: str | None
) -> None:
    own = "00000000-0000-4000-8000-000000000000"
    headers = [(b"x-ms-client-request-id", one.encode(errors="surrogateescape")) for one in sent]
    said = {**BEARER, PIN: "blue", "x-request-id": own}
    answer = scoring.client.post(path, headers=[*((k.encode(), v.encode()) for k, v in said.items()), *headers])
    assert answer.headers.get("x-ms-client-request-id") == kept
    assert answer.headers["x-request-id"] != own
    for seen in rules[1]["blue"].scored():
        assert seen["headers"].get("x-ms-client-request-id") == kept
        assert seen["headers"]["x-request-id"] == answer.headers["x-request-id"]


@pytest.mark.parametrize("headers", [["Bearer primary-key"] * 2, ["Bearer nope", "Bearer primary-key"]])
def test_authorization_given_twice_is_refused(scoring: RunningAgent, headers: list[str]) -> None:
    answer = scoring.client.post(INFER, headers=[("authorization", value) for value in headers])
    assert answer.status_code == 401


@pytest.mark.parametrize(
    ("path", "status", "reason"), [("fails", "400", "Bad Request"), ("overloaded", "503", "Service Unavailable")]
)
def test_a_failing_model_is_424_with_its_own_body(scoring: RunningAgent, path: str, status: str, reason: str) -> None:
    answer = scoring.client.post(f"/endpoints/images/v2/models/{path}/infer", headers={**BEARER, PIN: "blue"})
    assert answer.status_code == 424
    assert answer.headers["ms-azureml-model-error-statuscode"] == status
    assert answer.headers["ms-azureml-model-error-reason"] == reason
    assert list(answer.json()) == ["error"]
    plain = scoring.client.get(f"/endpoints/images/v2/models/{path}/ready", headers={**BEARER, PIN: "blue"})
    assert plain.status_code == int(status)


WORDS = {
    "fails": "unexpected shape for input",
    "overloaded": "queue is full",
    "quoting": 'no "such" thing \\',
    "structured": "in an object",
}


@pytest.mark.parametrize("name", FAILURES)
def test_at_the_scoring_address_a_failure_has_the_form_that_sdks_read(scoring: RunningAgent, name: str) -> None:
    answer = scoring.client.post("/endpoints/failing/", headers={**BEARER, PIN: name})
    status, body = FAILURES[name]
    assert (answer.status_code, answer.headers["ms-azureml-model-error-statuscode"]) == (424, str(status))
    if name in WORDS:
        assert answer.json()["error"]["message"] == WORDS[name]
    else:
        assert answer.content == body, "what is not Triton's form stays as it is"


def test_past_the_bound_is_429(scoring: RunningAgent, rules: Rules) -> None:
    with ThreadPoolExecutor(2) as pool:
        path = "/endpoints/solo/v2/models/held/infer"
        held = [pool.submit(scoring.client.post, path, headers=BEARER) for _ in range(2)]
        for _ in held:
            assert rules[1]["solo"].arrived.acquire(timeout=30)
        answer = scoring.client.post("/endpoints/solo/v2/models/m/infer", headers=BEARER)
        rules[1]["solo"].release()
        assert answer.status_code == 429
        assert answer.headers["retry-after"] == "1"
        _, message = code_and_message(answer)
        assert "'solo' has 2 requests in flight" in message
        assert "1 (instances) times 2 (request_settings.max_concurrent_requests_per_instance)" in message
        assert "Each proxy has this limit" in message
        assert [h.result().status_code for h in held] == [200, 200]


FORM = "application/x-www-form-urlencoded"
#: What a client sends as content type -> what Triton gets. A user's own server gets what was sent.
CONTENT_TYPES = [
    (FORM, {}, "application/json"),
    ("Application/X-WWW-Form-URLencoded; charset=utf-8", {}, "application/json"),
    (f"text/plain, {FORM}", {}, "application/json"),
    (FORM, {"inference-header-content-length": "2"}, "application/octet-stream"),
    ("application/json", {}, "application/json"),
    ("application/octet-stream", {"inference-header-content-length": "2"}, "application/octet-stream"),
    ("text/csv", {}, "text/csv"),
]


@pytest.mark.parametrize("below", ["", "v2/models/m/infer"])
@pytest.mark.parametrize(("sent", "headers", "triton"), CONTENT_TYPES)
def test_no_form_reaches_triton(
    sent: str, headers: dict[str, str], triton: str, below: str, scoring: RunningAgent, rules: Rules
) -> None:
    """Nor does its copy. Green is a user's own server here, blue is Triton."""
    for endpoint in ("own", "own-copied"):
        for upstream in rules[1].values():
            upstream.requests.clear()
        # Two ids at once: both are rewritten by one filter.
        said = {**BEARER, **headers, "content-type": sent, "x-ms-client-request-id": "mine"}
        answer = scoring.client.post(f"/endpoints/{endpoint}/{below}", headers=said, content=b"{}")
        assert answer.status_code == 200
        blue, green = rules[1]["blue"], rules[1]["green"]
        eventually(lambda blue=blue, green=green: bool(blue.scored() and green.scored()))  # type: ignore[misc]
        [by_triton], [by_own] = blue.scored(), green.scored()
        got = by_triton["headers"]["content-type"]
        if endpoint == "own":
            assert got == "application/octet-stream", "a copy of what the user's own server gets"
            assert by_own["headers"]["content-type"] == sent
        else:
            assert got == triton
        assert by_triton["headers"]["x-ms-client-request-id"] == "mine"
        assert "amphitrite-content-type" not in by_own["headers"]


def test_http_1_0_is_answered(scoring: RunningAgent, rules: Rules) -> None:
    """By nginx, for one, unless it is told otherwise. Its connections end with the answer."""
    context = ssl.create_default_context(cafile=str(scoring.certificate))
    for host in ("host: x\r\n", ""):
        with (
            socket.create_connection(("127.0.0.1", scoring.port), 10) as raw,
            context.wrap_socket(raw, server_hostname="127.0.0.1") as tls,
        ):
            head = f"POST {INFER} HTTP/1.0\r\n{host}authorization: Bearer primary-key\r\n{PIN}: blue\r\n"
            tls.sendall(f"{head}content-length: 2\r\n\r\n{{}}".encode())
            answer = b"".join(iter(lambda tls=tls: tls.recv(65536), b""))  # type: ignore[misc]
        assert answer.startswith(b"HTTP/1.0 200 "), answer
    assert [seen["body"] for seen in rules[1]["blue"].scored()] == [2, 2]


HELD = "v2/models/held/infer"


def test_an_instance_sees_that_a_deadline_has_passed(scoring: RunningAgent, rules: Rules) -> None:
    assert scoring.client.post(f"/endpoints/solo/{HELD}", headers=BEARER).status_code == 408
    assert rules[1]["solo"].left.acquire(timeout=30)


def test_an_instance_sees_that_a_client_has_gone(scoring: RunningAgent, rules: Rules) -> None:
    context = ssl.create_default_context(cafile=str(scoring.certificate))
    client = http.client.HTTPSConnection("127.0.0.1", scoring.port, context=context)
    client.request("POST", f"/endpoints/images/{HELD}", headers={**BEARER, PIN: "blue"}, body=b"{}")
    assert rules[1]["blue"].arrived.acquire(timeout=30)
    client.close()
    assert rules[1]["blue"].left.acquire(timeout=30)


@pytest.mark.parametrize(
    ("method", "target", "tries"), [("POST", "strict", 1), ("POST", "repeated", 3), ("GET", "strict", 3)]
)
def test_what_may_have_run_is_repeated_only_where_that_is_allowed(
    scoring: RunningAgent, rules: Rules, method: str, target: str, tries: int
) -> None:
    path = "/endpoints/pair/v2/models/vanishes/infer"
    answer = scoring.client.request(method, path, headers={**BEARER, PIN: target})
    assert (answer.status_code, code_and_message(answer)[0]) == (503, "InstanceConnectionLost")
    assert len(rules[1]["blue"].scored()) + len(rules[1]["green"].scored()) == tries


def test_what_cannot_be_looked_into_runs_once(scoring: RunningAgent, rules: Rules) -> None:
    """It may be what has ended the instance."""
    headers = {**BEARER, PIN: "repeated", "content-encoding": "gzip"}
    answer = scoring.client.post("/endpoints/pair/v2/models/vanishes/infer", headers=headers, content=b"x")
    assert (answer.status_code, code_and_message(answer)[0]) == (503, "InstanceConnectionLost")
    assert len(rules[1]["blue"].scored()) + len(rules[1]["green"].scored()) == 1


@pytest.mark.parametrize(
    ("offered", "chosen"), [(["h2", "http/1.1"], "http/1.1"), (["h2"], "h2"), (["http/1.0"], None), ([], None)]
)
def test_http_2_is_for_who_has_nothing_else(offered: list[str], chosen: str | None, scoring: RunningAgent) -> None:
    context = ssl.create_default_context(cafile=str(scoring.certificate))
    if offered:
        context.set_alpn_protocols(offered)
    with (
        socket.create_connection(("127.0.0.1", scoring.port)) as raw,
        context.wrap_socket(raw, server_hostname="127.0.0.1") as tls,
    ):
        assert tls.selected_alpn_protocol() == chosen
        assert tls.version() == "TLSv1.3"


def test_large_body_passes_by_unbuffered(scoring: RunningAgent) -> None:
    """Sent in parts by the client, more than any buffer on the way."""
    chunks = (b"x" * 65536 for _ in range(30))
    length = {"content-length": str(30 * 65536)}
    answer = scoring.client.post(INFER, headers={**BEARER, PIN: "blue", **length}, content=chunks)
    assert answer.status_code == 200


def test_access_log_has_what_happened_and_no_key(scoring: RunningAgent) -> None:
    answer = scoring.client.post(f"{INFER}?secret=1", headers={**BEARER, PIN: "blue"})
    wanted = answer.headers["x-request-id"]
    log = scoring.logs / "access.log"
    eventually(lambda: wanted in log.read_text())
    text = log.read_text()
    line = json.loads(next(x for x in text.splitlines() if wanted in x))
    assert (line["endpoint"], line["deployment"], line["cluster"], line["code"]) == ("images", "blue", "blue", 200)
    assert (line["path"], line["flags"], line["attempts"]) == (INFER, "-", 1)
    assert "primary-key" not in text
    assert "secret=1" not in text


@pytest.mark.parametrize("path", ["/endpoints/unknown/v2", INFER, "/endpoints/solo/v2/models/vanishes/infer"])
def test_a_refusal_is_found_in_the_access_log(path: str, scoring: RunningAgent) -> None:
    """By the id that its body and its header have."""
    answer = scoring.client.post(path, headers=BEARER if "solo" in path else {})
    assert answer.status_code in (401, 404, 503)
    code_and_message(answer)
    wanted, log = answer.headers["x-request-id"], scoring.logs / "access.log"
    eventually(lambda: wanted in log.read_text())


def test_admin_socket_is_private(scoring: RunningAgent) -> None:
    assert scoring.run.stat().st_mode & 0o777 == 0o700
    transport = httpx.HTTPTransport(uds=str(scoring.run / "envoy-admin.sock"))
    with httpx.Client(transport=transport) as admin:
        assert admin.get("http://envoy/ready").text == "LIVE\n"
