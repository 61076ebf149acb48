"""Whose tokens count: our own keys over time, and those of an OpenID Connect issuer that is there,
lies, or is away."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
import pytest

from amphitrite.controlplane.auth import oidc_keys, scoring_tokens
from amphitrite.controlplane.auth.oidc_keys import IssuerKeys, fetch_keys
from amphitrite.controlplane.reconciliation.token_issuers import Issuers
from amphitrite.controlplane.settings import token_settings
from amphitrite.controlplane.settings.token_settings import TokenSettings
from amphitrite.controlplane.store.state.database import SqlStore, open_store
from amphitrite.schemas.errors import Error

from ...certificate import write_certificate
from ...stores import new_store

DAY = 86_400.0
ISSUER = "https://issuer.test/tenant"
CONFIGURATION = f"{ISSUER}/.well-known/openid-configuration"
RSA = json.loads(scoring_tokens.issuers([scoring_tokens.make_key(0.0)], identity=False)[0].jwks)["keys"][0]
EC = {
    "kty": "EC", "crv": "P-256", "kid": "ec", "x": "WKn-ZIGevcwGIyyrzFoZNBdaq9_TsqzGl96oc0CWuis",
    "y": "y77t-RvAHRKTsSGdIYUfweuOvwrvDD-Q3Hv5J0fSKbE",
}  # fmt: skip


def answers(keys: Any, **about: Any) -> Callable[[str], bytes]:
    """An issuer with these keys; what is not text is sent as JSON."""
    configuration = {"issuer": ISSUER, "jwks_uri": f"{ISSUER}/keys", **about}
    found = {CONFIGURATION: configuration, f"{ISSUER}/keys": keys}
    return lambda url: found[url] if isinstance(found[url], bytes) else json.dumps(found[url]).encode()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    opened = new_store(tmp_path / "amphitrite.db")
    yield opened
    opened.close()


def test_only_public_members_of_usable_keys_are_taken_in_one_order() -> None:
    private = {**RSA, "d": "secret", "x5c": ["..."], "use": "sig"}
    useless: list[Any] = [
        {"kty": "oct", "k": "c2VjcmV0", "alg": "HS256"}, {**RSA, "use": "enc"}, {**RSA, "alg": "HS256"},
        {**RSA, "alg": "none"}, {**EC, "crv": "secp256k1"}, {**EC, "x": "AAAA"}, {**RSA, "n": 5}, {"kty": "RSA"},
        "x", None,
    ]  # fmt: skip
    taken = fetch_keys(ISSUER, answers({"keys": [private, *useless, EC]}))
    assert taken == fetch_keys(ISSUER, answers({"keys": [EC, RSA]}))
    public = {name: RSA[name] for name in ("kty", "n", "e", "kid", "alg")}
    assert sorted(json.loads(taken)["keys"], key=lambda key: key["kty"]) == [EC, public]


@pytest.mark.parametrize(
    ("get", "says"),
    [
        (answers({"keys": []}), "no supported key"),
        (answers({"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}), "no supported key"),
        (answers({"keys": 5}), "no list of keys"),
        (answers([]), "not a JSON object"),
        (answers(b"<html>"), "its key set is not JSON"),
        (answers(b"[" * 100_000), "its key set is not JSON"),
        (
            answers({"keys": [RSA]}, issuer="https://other.test"),
            "its configuration names the issuer 'https://other.test'",
        ),
        (answers({"keys": [RSA]}, issuer=f"{ISSUER}/"), "not the value of ML_SCORING_ISSUER"),
        (answers({"keys": [RSA]}, jwks_uri="http://issuer.test/keys"), "not an https URL"),
        (answers({"keys": [RSA]}, jwks_uri="file:///etc/passwd"), "not an https URL"),
        (answers({"keys": [RSA]}, jwks_uri="https://[x"), "not an https URL"),
        (answers({"keys": [RSA]}, jwks_uri=None), "not an https URL"),
    ],
)
def test_an_issuer_that_cannot_be_used(get: Callable[[str], bytes], says: str) -> None:
    with pytest.raises(Error) as caught:
        fetch_keys(ISSUER, get)
    assert caught.value.code == "RuntimeUnavailable"
    assert says in caught.value.message


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        return

    def do_GET(self) -> None:
        status, headers, body = {
            "/keys": (200, {}, b"{}"),
            "/moved": (302, {"location": "/keys"}, b""),
            "/broken": (500, {}, b"secret"),
            "/endless": (200, {}, b"x" * (oidc_keys.MAX_BYTES + 1)),
        }[self.path]
        self.send_response(status)
        for name, value in {**headers, "content-length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """(URL, CA file) of an https server."""
    certificate, key = write_certificate(tmp_path_factory.mktemp("issuer"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda request, client_address: None  # type: ignore[method-assign]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"https://127.0.0.1:{server.server_port}", certificate
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize(
    ("path", "says"), [("/moved", "answered 302"), ("/broken", "answered 500"), ("/endless", "more than 1048576 bytes")]
)
def test_what_is_fetched_has_bounds(
    served: tuple[str, Path], path: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(served[1]))
    assert oidc_keys.fetch(f"{served[0]}/keys") == b"{}"
    with pytest.raises(Error) as caught:
        oidc_keys.fetch(served[0] + path)
    assert says in caught.value.message
    assert "secret" not in caught.value.message


def test_an_issuer_whom_nobody_vouches_for(served: tuple[str, Path]) -> None:
    with pytest.raises(Error, match="no answer from"):
        oidc_keys.fetch(f"{served[0]}/keys")


def test_what_was_had_last_stays() -> None:
    """And the control plane is woken when it changes, not when it does not."""
    sets: list[Any] = [{"keys": [RSA]}, {"keys": [RSA]}, b"gone", {"keys": [EC]}]
    changed: list[str | None] = []
    keys = IssuerKeys(ISSUER, lambda: changed.append(keys.jwks()), lambda url: answers(sets[0])(url))
    keys.refresh()
    first = keys.jwks()
    sets.pop(0)
    keys.refresh()
    sets.pop(0)
    with pytest.raises(Error):
        keys.refresh()
    assert (keys.jwks(), changed) == (first, [first])
    sets.pop(0)
    keys.refresh()
    assert changed == [first, keys.jwks()]


def kids(found: Iterator[Any] | tuple[Any, ...], auth: str) -> list[str]:
    return [key["kid"] for one in found if one.auth == auth for key in json.loads(one.jwks)["keys"]]


def test_our_keys_come_sign_and_go(store: SqlStore, tmp_path: Path) -> None:
    now = [1000.0 * DAY]
    settings = TokenSettings()
    issuers = Issuers(store, settings, lambda: None)
    signer = scoring_tokens.ScoringTokens(store.signing_keys, settings, "test", lambda: now[0])
    with pytest.raises(Error, match="no key to sign a token yet"):
        signer.for_endpoint("cats", "b")

    def look() -> list[str]:
        found = issuers((), now[0])
        assert [one.auth for one in found] == ["aad_token", "aml_token"]
        assert kids(found, "aad_token") == kids(found, "aml_token")
        assert "private" not in repr(found)
        assert not {"d", "p", "q"} & {name for key in json.loads(found[0].jwks)["keys"] for name in key}
        return kids(found, "aml_token")

    def signed() -> str:
        return str(jwt.get_unverified_header(signer.for_endpoint("cats", "b").text.reveal())["kid"])

    (first,) = look()
    assert (look(), signed()) == ([first], first)
    # A control plane that begins anew has the same key.
    with closing(open_store(tmp_path / "amphitrite.db")) as again:
        assert kids(Issuers(again, settings, lambda: None)((), now[0]), "aml_token") == [first]
    now[0] += 30 * DAY
    assert look()[0] == first
    second = look()[1]
    assert signed() == first
    now[0] += 3600
    assert (look(), signed()) == ([first, second], second)
    now[0] += DAY
    assert (look(), signed()) == ([second], second)


def test_what_a_token_says(store: SqlStore) -> None:
    now = 1000.0 * DAY + 0.5
    settings = TokenSettings(lifetime_s=600)
    (theirs, ours) = Issuers(store, settings, lambda: None)((), now)
    signer = scoring_tokens.ScoringTokens(store.signing_keys, settings, "a workspace", lambda: now)
    token = signer.for_endpoint("Cats", "b")
    claims = jwt.decode(
        token.text.reveal(), jwt.PyJWKSet.from_json(ours.jwks).keys[0], ["RS256"], audience=ours.audiences,
        issuer=ours.issuer, options={"verify_exp": False, "verify_iat": False, "verify_nbf": False},
    )  # fmt: skip
    assert len(claims.pop("jti")) == 32
    assert claims == {
        "iss": ours.issuer, "aud": ours.audiences[0], "sub": "a workspace", "endpoint": "Cats", "binding": "b",
        "iat": int(now), "nbf": int(now), "exp": int(now) + 600,
    }  # fmt: skip
    assert (token.expires_at, token.refresh_after) == (int(now) + 600, int(now + 300))
    assert token.text.reveal() not in repr(token)
    text, lifetime_s = signer.for_resource("https://ml.azure.com")
    claims = jwt.decode(text.reveal(), options={"verify_signature": False})
    assert (claims["iss"], claims["aud"], lifetime_s) == (theirs.issuer, theirs.audiences[0], 600)
    assert "endpoint" not in claims


def test_the_configured_issuer_is_kept_while_it_is_away(store: SqlStore) -> None:
    known: list[str | None] = [None]
    settings = TokenSettings(issuer=ISSUER)
    issuers = Issuers(store, settings, lambda: known[0])
    assert [one.auth for one in issuers((), 0.0)] == ["aml_token"]
    known[0] = "{}"
    published = issuers((), 0.0)
    assert (published[0].issuer, published[0].jwks) == (ISSUER, "{}")
    # Another control plane leads now, and the issuer does not answer.
    known[0] = None
    assert issuers(published, 0.0) == published
    # It is another issuer, or another audience, now.
    for other in (TokenSettings(issuer=f"{ISSUER}2"), TokenSettings(issuer=ISSUER, audiences=("x",))):
        assert [one.auth for one in Issuers(store, other, lambda: None)(published, 0.0)] == ["aml_token"]
    # None is configured any more.
    own = Issuers(store, TokenSettings(), lambda: None)(published, 0.0)
    assert [one.issuer for one in own] == [scoring_tokens.IDENTITY, scoring_tokens.ENDPOINTS]
    with pytest.raises(Error, match="ML_SCORING_ISSUER"):
        scoring_tokens.ScoringTokens(store.signing_keys, settings, "", lambda: 0.0).for_resource("https://ml.azure.com")


def test_settings() -> None:
    assert token_settings.read({}) == TokenSettings(12 * 3600, 30 * 86_400, None, ("https://ml.azure.com",))
    given = {
        "ML_SCORING_TOKEN_LIFETIME_S": "600", "ML_SCORING_TOKEN_ROTATION_S": "7200", "ML_SCORING_ISSUER": f"{ISSUER}/",
        "ML_SCORING_AUDIENCES": "b, a",
    }  # fmt: skip
    assert token_settings.read(given) == TokenSettings(600, 7200, f"{ISSUER}/", ("a", "b"))


@pytest.mark.parametrize(
    ("environ", "says"),
    [
        ({"ML_SCORING_TOKEN_LIFETIME_S": "299"}, "allowed: 300 to 2592000"),
        ({"ML_SCORING_TOKEN_LIFETIME_S": "x"}, "a whole number"),
        ({"ML_SCORING_TOKEN_ROTATION_S": "60"}, "allowed: 3600 to"),
        ({"ML_SCORING_ISSUER": "http://issuer.test"}, "must have the form https://"),
        ({"ML_SCORING_ISSUER": "https://user:secret@issuer.test"}, "must have the form https://"),
        ({"ML_SCORING_AUDIENCES": "x"}, "but ML_SCORING_ISSUER is not"),
    ],
)
def test_settings_that_are_refused(environ: Mapping[str, str], says: str) -> None:
    with pytest.raises(Error) as caught:
        token_settings.read(environ)
    assert says in caught.value.message
    assert "secret" not in caught.value.message
