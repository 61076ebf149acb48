"""Which tokens open an endpoint, row by row, and that behind a token the rules are those behind a
key."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pytest
from cryptography.hazmat.primitives import serialization

from amphitrite.dataplane.envoy.filters.bodiless_requests import MAX_BYTES
from amphitrite.dataplane.table.routing_table import Route, RoutingTable, Target
from amphitrite.dataplane.table.seed import encode_seed

from .agents import KEY, RunningAgent, cluster, eventually
from .conftest import MakeAgent
from .minting import AUDIENCE, ISSUER, OIDC_AUDIENCE, OIDC_ISSUER, binding, issuer, mint, oidc, pair
from .refusals import code_and_message
from .rule_table import MAX_BODY, MAX_UNSIZED_BODY
from .upstream import Upstream

pytestmark = pytest.mark.serving

PIN = "azureml-model-deployment"
INFER = "v2/models/m/infer"
SKEW_S = 60  #: by which Envoy lets clocks differ


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def by_hand(header: Mapping[str, str], signature: Callable[[bytes], bytes]) -> str:
    """A token that no library makes."""
    claims = {"iss": ISSUER, "aud": AUDIENCE, "exp": int(time.time()) + 3600}
    claims |= {"endpoint": "tokens", "binding": binding("tokens")}
    signed = b".".join(_part(json.dumps(one).encode()) for one in ({"typ": "JWT", **header}, claims))
    return (signed + b"." + _part(signature(signed))).decode()


def _part(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def signed_with_the_public_key() -> str:
    """HS256, its secret what everybody may know."""
    public = pair("one").public_key()
    pem = public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return by_hand({"alg": "HS256", "kid": "one"}, lambda text: hmac.new(pem, text, hashlib.sha256).digest())


def past() -> int:
    return int(time.time()) - SKEW_S - 5


#: What is sent (an ``authorization`` header, or none) -> which of the two endpoints it opens.
OPENS = {
    "ours": (lambda: bearer(mint()), "tokens"),
    "ours, by the other key": (lambda: bearer(mint(kid="two")), "tokens"),
    "the issuer's": (lambda: bearer(oidc()), "oidc"),
    "the issuer's, for two audiences": (lambda: bearer(oidc(aud=["https://other.test", OIDC_AUDIENCE])), "oidc"),
    "the issuer's, with a slash": (lambda: bearer(oidc(aud=f"{OIDC_AUDIENCE}/")), "oidc"),
    "the issuer's, with a claim of ours": (lambda: bearer(oidc(endpoint="tokens")), "oidc"),
    "nothing": (dict, None),
    "empty": (lambda: {"authorization": ""}, None),
    "no scheme": (lambda: {"authorization": mint()}, None),
    "scheme in lower case": (lambda: {"authorization": f"bearer {mint()}"}, "tokens"),
    "scheme in upper case": (lambda: {"authorization": f"BEARER {oidc()}"}, "oidc"),
    "scheme in mixed case": (lambda: {"authorization": f"bEARER {mint()}"}, None),
    "two spaces": (lambda: {"authorization": f"Bearer  {mint()}"}, "tokens"),
    "two schemes": (lambda: {"authorization": f"bearer Bearer {mint()}"}, None),
    "a key": (lambda: bearer(KEY), None),
    "garbage": (lambda: bearer("a.b.c"), None),
    "long garbage": (lambda: bearer("a" * 9000 + ".b.c"), None),
    "another endpoint's": (lambda: bearer(mint("other-tokens")), None),
    "of an endpoint in other case": (lambda: bearer(mint("Tokens")), None),
    "of a longer name": (lambda: bearer(mint("tokens2")), None),
    "of an earlier endpoint of the name": (lambda: bearer(mint(binding="the first tokens")), None),
    "of an endpoint of the name, unbound": (lambda: bearer(mint(binding=None)), None),
    "of another endpoint, bound to this": (lambda: bearer(mint("other", binding=binding("tokens"))), "tokens"),
    "the issuer's, bound to this": (lambda: bearer(oidc(binding=binding("tokens"))), "oidc"),
    "of no endpoint": (lambda: bearer(mint(endpoint=None)), None),  # type: ignore[arg-type]
    "of a list of endpoints": (lambda: bearer(mint(["tokens"])), None),  # type: ignore[arg-type]
    "expired": (lambda: bearer(mint(exp=past())), None),
    "the issuer's, expired": (lambda: bearer(oidc(exp=past())), None),
    "without an end": (lambda: bearer(mint(exp=None)), None),
    "not valid yet": (lambda: bearer(mint(nbf=int(time.time()) + SKEW_S + 60)), None),
    "wrong audience": (lambda: bearer(mint(aud="urn:test:other")), None),
    "the issuer's, wrong audience": (lambda: bearer(oidc(aud="https://management.azure.com")), None),
    "without an audience": (lambda: bearer(mint(aud=None)), None),
    "wrong issuer": (lambda: bearer(mint(iss="urn:test:other")), None),
    "without an issuer": (lambda: bearer(mint(iss=None)), None),
    "our claims, the issuer's key": (lambda: bearer(mint(key=pair("oidc"))), None),
    "the issuer's claims, our key": (lambda: bearer(oidc(key=pair("one"))), None),
    "the issuer's name, our audience": (lambda: bearer(oidc(iss=OIDC_ISSUER, aud=AUDIENCE)), None),
    "unknown kid": (lambda: bearer(mint(kid="three")), None),
    "a stranger's key": (lambda: bearer(mint(key=pair("stranger"))), None),
    "a stranger's key, no kid": (lambda: bearer(by_hand({"alg": "RS256"}, lambda text: b"x" * 256)), None),
    "alg none": (lambda: bearer(by_hand({"alg": "none"}, lambda text: b"")), None),
    "alg none, with a signature": (lambda: bearer(by_hand({"alg": "none", "kid": "one"}, lambda text: b"x")), None),
    "HS256 with the public key": (lambda: bearer(signed_with_the_public_key()), None),
    "another's signature": (lambda: bearer(mint(exp=past() + 3600)[:-8] + mint()[-8:]), None),
    "two tokens in one": (lambda: bearer(f"{mint()},{mint()}"), None),
    "two tokens in one, with a space": (lambda: bearer(f"{mint()}, Bearer {mint()}"), None),
    "a token and a word": (lambda: bearer(f"{mint()} x"), None),
}  # fmt: skip


@pytest.mark.parametrize("endpoint", ["tokens", "oidc", "images"])
@pytest.mark.parametrize("sent", OPENS)
def test_who_is_let_in(sent: str, endpoint: str, scoring: RunningAgent) -> None:
    make, opens = OPENS[sent]
    want = 200 if endpoint == opens or (endpoint == "images" and sent == "a key") else 401
    answer = scoring.client.post(f"/endpoints/{endpoint}/{INFER}", headers={**make(), PIN: "blue"}, json={})
    assert answer.status_code == want, answer.text
    if want == 401:
        assert code_and_message(answer)[0] == "AuthenticationFailed"
        assert answer.headers["www-authenticate"] == "Bearer"
        assert answer.headers["content-type"] == "application/json"
        assert PIN not in answer.headers


@pytest.mark.parametrize("second", ["x", "Bearer x", "the same"])
def test_two_authorization_headers(second: str, scoring: RunningAgent) -> None:
    token = f"Bearer {mint()}"
    other = token if second == "the same" else second
    for pair_ in ((token, other), (other, token)):
        headers = [("authorization", one) for one in pair_]
        answer = scoring.client.post(f"/endpoints/tokens/{INFER}", headers=headers, json={})
        assert answer.status_code == 401


@pytest.mark.parametrize(
    ("headers", "path"), [({}, "?access_token={}"), ({"cookie": "access_token={}"}, ""), ({"x-token": "{}"}, "")]
)
def test_a_token_in_another_place(headers: dict[str, str], path: str, scoring: RunningAgent) -> None:
    token = mint()
    sent = {name: value.format(token) for name, value in headers.items()}
    answer = scoring.client.post(f"/endpoints/tokens/{INFER}{path.format(token)}", headers=sent, json={})
    assert answer.status_code == 401


@dataclass(frozen=True, slots=True)
class Row:
    """What a request with a good token meets below ``/endpoints/tokens``."""

    path: str
    status: int
    code: str | None = None
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b"{}"
    want: Mapping[str, str] = field(default_factory=dict)


BLUE = {PIN: "blue"}
ROWS = [
    Row(f"/{INFER}", 200, headers=BLUE, want=BLUE),
    Row("/", 200, headers=BLUE, want=BLUE),
    Row("", 200, headers=BLUE, want=BLUE),
    Row("/", 404, "NoScoringModel", headers={PIN: "green"}),
    Row("/", 405, "MethodNotAllowed", method="GET"),
    Row(f"/{INFER}", 404, "DeploymentNotFound", headers={PIN: "nope"}),
    Row(f"/{INFER}", 503, "DeploymentNotReady", headers={PIN: "absent"}),
    Row("/v2/health/ready", 200, method="GET"),
    Row("/v2/repository/index", 403, "Forbidden"),
    Row("/v2/repository/index", 403, "Forbidden", body=b"x" * (MAX_BYTES + 1)),
    Row(f"/{INFER}", 200, headers=BLUE, body=b"x" * MAX_BODY),
    Row(f"/{INFER}", 413, "RequestTooLarge", body=b"x" * (MAX_BODY + 1)),
    Row("/v2/models/fails/infer", 424, headers=BLUE, want={"ms-azureml-model-error-statuscode": "400"}),
    Row("/v2/models/fails/ready", 400, method="GET", headers=BLUE),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.method} {row.path} {row.status}")
def test_behind_a_token(row: Row, scoring: RunningAgent) -> None:
    headers = {**bearer(mint()), **row.headers, "x-ms-client-request-id": "mine"}
    answer = scoring.client.request(row.method, f"/endpoints/tokens{row.path}", headers=headers, content=row.body)
    assert answer.status_code == row.status, answer.text
    assert answer.headers["x-ms-client-request-id"] == "mine"
    assert {k: answer.headers.get(k) for k in row.want} == row.want
    if row.code is not None:
        assert code_and_message(answer)[0] == row.code


@pytest.mark.parametrize(
    ("method", "size", "status"),
    [
        ("POST", MAX_UNSIZED_BODY, 200),
        ("POST", MAX_UNSIZED_BODY + 1, 413),
        ("GET", 2, 200),
        ("GET", MAX_BYTES + 1, 413),
    ],
)
def test_a_body_of_unknown_length(method: str, size: int, status: int, scoring: RunningAgent) -> None:
    headers = {**bearer(mint()), **BLUE}
    answer = scoring.client.request(method, f"/endpoints/tokens/{INFER}", headers=headers, content=iter([b"x" * size]))
    assert answer.status_code == status, answer.text


@pytest.mark.parametrize("path", ["/v2/repository/index", "/", f"/{INFER}"])
def test_nothing_is_told_without_a_token(path: str, scoring: RunningAgent) -> None:
    """Nor is a body waited for."""
    answer = scoring.client.post(f"/endpoints/tokens{path}", content=b"x" * (MAX_BODY + 1))
    assert answer.status_code == 401, answer.text


@pytest.mark.parametrize(("endpoint", "make"), [("tokens", mint), ("oidc", oidc)])
def test_no_model_sees_a_token(
    endpoint: str, make: Callable[[], str], scoring: RunningAgent, rules: tuple[RunningAgent, dict[str, Upstream]]
) -> None:
    """Nor does the copy of a request, of which half are sent to green."""
    token, upstreams = make(), rules[1]
    for _ in range(20):
        assert scoring.client.post(f"/endpoints/{endpoint}/{INFER}", headers=bearer(token), json={}).status_code == 200
    seen = [request for upstream in upstreams.values() for request in upstream.scored()]
    assert len(seen) >= 20
    assert token.split(".")[1] not in json.dumps(seen)
    assert not [request for request in seen if "authorization" in {name.lower() for name in request["headers"]}]


def token_table(version: int, upstream: Upstream, *kids: str) -> RoutingTable:
    """One endpoint for tokens of these keys."""
    route = Route("images", (), (Target("blue", "blue", 5.0),), (("blue", 100),), auth="aml_token")
    return RoutingTable(version, (route,), (cluster("blue", [upstream]),), issuers=(issuer(*kids),) if kids else ())


def test_changing_keys_loses_no_request(make_agent: MakeAgent) -> None:
    """The next key comes, signs, and the former one goes, while clients that keep their connections
    never notice. The listener stays as it is; an agent that begins anew takes the keys from its
    disk."""
    agent = make_agent()
    context = ssl.create_default_context(cafile=str(agent.certificate))
    with Upstream("blue") as upstream:
        agent.start()
        agent.put_in_force(token_table(1, upstream, "one"))
        current, stop = [bearer(mint("images"))], threading.Event()
        answers: list[list[object]] = [[] for _ in range(4)]

        def ask(mine: list[object]) -> None:
            """Over one connection: it is not made again when it is lost."""
            client = http.client.HTTPSConnection("127.0.0.1", agent.port, context=context, timeout=30)
            client.connect()
            client.auto_open = 0
            while not stop.is_set():
                try:
                    client.request("POST", f"/endpoints/images/{INFER}", body=b"{}", headers=current[0])
                    answer = client.getresponse()
                    answer.read()
                    mine.append(answer.status)
                except (OSError, http.client.HTTPException) as error:
                    mine.append(error)
                    stop.set()
            client.close()

        clients = [threading.Thread(target=ask, args=(mine,)) for mine in answers]
        for one in clients:
            one.start()

        def settle() -> None:
            """Until no request is under way any more that began before."""
            enough = [len(mine) + 2 for mine in answers]
            eventually(lambda: stop.is_set() or all(len(m) >= n for m, n in zip(answers, enough, strict=True)))

        for version, kids in enumerate((("one", "two"), ("two",), ("two", "three"), ("three",)), start=2):
            agent.put_in_force(token_table(version, upstream, *kids))
            settle()
            current[0] = bearer(mint("images", kids[-1]))
            settle()
        stop.set()
        for one in clients:
            one.join()
        assert {status for mine in answers for status in mine} == {200}

        url = f"/endpoints/images/{INFER}"
        assert agent.client.post(url, headers=bearer(mint("images", "two")), json={}).status_code == 401
        # When a token was last used is told of all together.
        agent.control_plane.wait_for_metrics(lambda metrics: [*metrics["used"].get("images", ())] == ["token"])
        agent.control_plane.stop()
        agent.kill()
        agent.start()
        assert agent.client.post(url, headers=current[0], json={}).status_code == 200


def test_a_new_proxy_takes_the_keys_from_its_seed(make_agent: MakeAgent) -> None:
    agent = make_agent()
    agent.control_plane.stop()
    with Upstream("blue") as upstream:
        seed = agent.state.parent / "seed.gz"
        seed.write_bytes(encode_seed(token_table(7, upstream, "one")))
        agent.options = ("--seed", str(seed))
        agent.start()
        eventually(lambda: agent.health() == 200)

        def answer(token: str) -> int:
            return agent.client.post(f"/endpoints/images/{INFER}", headers=bearer(token), json={}).status_code

        eventually(lambda: answer(mint("images")) == 200)
        assert answer(mint("images", "two")) == 401


def test_without_an_issuer_nobody_is_let_in(make_agent: MakeAgent) -> None:
    """A table of before there were tokens, and the first with an issuer after it."""
    agent = make_agent()
    with Upstream("blue") as upstream:
        agent.start()
        agent.put_in_force(token_table(1, upstream))
        url, headers = f"/endpoints/images/{INFER}", bearer(mint("images"))
        assert agent.client.post(url, headers=headers, json={}).status_code == 401
        agent.put_in_force(token_table(2, upstream, "one"))
        assert agent.client.post(url, headers=headers, json={}).status_code == 200
