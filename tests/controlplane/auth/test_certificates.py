"""Our own authority: what it signs, when it signs anew, and that strict clients accept it."""

from __future__ import annotations

import ssl
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path

import grpc
import pytest
from cryptography import x509

from amphitrite.controlplane.auth import certificates
from amphitrite.controlplane.settings.home import Home
from amphitrite.schemas.errors import Error

from ...certificate import ends_at

DAY = 86_400.0
HOSTS = ("localhost", "127.0.0.1", "::1", "box")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path)
    made.create()
    return made


@pytest.fixture
def now() -> float:
    import time

    return time.time()


def files(home: Home) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in home.certificates.iterdir()}


def test_keys_are_private_and_nothing_else_lies_about(home: Home, now: float) -> None:
    certificates.ensure(home, HOSTS, now)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in home.certificates.iterdir()}
    assert modes == {"ca.key": 0o600, "server.key": 0o600, "ca.pem": 0o644, "server.pem": 0o644, "bundle.pem": 0o644}


def test_a_second_start_changes_nothing(home: Home, now: float) -> None:
    certificates.ensure(home, HOSTS, now)
    before = files(home)
    certificates.ensure(home, reversed(HOSTS), now + 59 * DAY)
    assert files(home) == before


@pytest.mark.parametrize(
    ("days", "hosts", "renewed"),
    [
        (59, HOSTS, False),
        (61, HOSTS, True),
        (-1, HOSTS, True),
        (1, (*HOSTS, "other.localhost"), True),
        (1, HOSTS[:2], True),
        (1, (*HOSTS, "*.ml.localhost"), True),
    ],
)
def test_the_leaf_is_renewed_with_its_old_key(
    home: Home, now: float, days: int, hosts: tuple[str, ...], renewed: bool
) -> None:
    first = ends_at(certificates.ensure(home, HOSTS, now).certificate_file)
    before = files(home)
    second = ends_at(certificates.ensure(home, hosts, now + days * DAY).certificate_file)
    after = files(home)
    assert (after["server.pem"] != before["server.pem"]) == renewed
    assert after["server.key"] == before["server.key"]
    assert (second > first) == (renewed and days > 0)


@pytest.mark.parametrize(
    ("lost", "damage"),
    [
        *((name, damage) for name in ("server.pem", "server.key", "bundle.pem") for damage in (b"", None)),
        ("ca.pem", None),
    ],
)
def test_whatever_is_lost_or_damaged_a_matching_set_comes_back(
    home: Home, now: float, lost: str, damage: bytes | None
) -> None:
    certificates.ensure(home, HOSTS, now)
    if damage is None:
        (home.certificates / lost).unlink()
    else:
        (home.certificates / lost).write_bytes(damage)
    made = certificates.ensure(home, HOSTS, now)
    assert handshake(made, "localhost") == "localhost"


@pytest.mark.parametrize(("lost", "damage"), [("ca.pem", b""), ("ca.key", b""), ("ca.key", None), ("ca.key", b"other")])
def test_an_authority_that_is_damaged_is_not_replaced_unasked(
    home: Home, now: float, lost: str, damage: bytes | None
) -> None:
    """Clients trust it. What is left of it is not touched, and the hint leads to a new one."""
    certificates.ensure(home, HOSTS, now)
    if damage is None:
        (home.certificates / lost).unlink()
    else:
        other = (home.certificates / "server.key").read_bytes()
        (home.certificates / lost).write_bytes(damage and other)
    before = files(home)
    with pytest.raises(Error, match="are not a certificate authority and its key") as caught:
        certificates.ensure(home, HOSTS, now)
    assert "remove both" in (caught.value.hint or "")
    assert files(home) == before
    for name in ("ca.pem", "ca.key"):
        (home.certificates / name).unlink(missing_ok=True)
    assert handshake(certificates.ensure(home, HOSTS, now), "localhost") == "localhost"


def test_an_authority_whose_certificate_is_lost_is_trusted_as_before(home: Home, now: float) -> None:
    made = certificates.ensure(home, HOSTS, now)
    trusted = made.ca_file.read_bytes()
    made.ca_file.unlink()
    again = certificates.ensure(home, (*HOSTS, "cats.localhost"), now)
    made.bundle_file.write_bytes(trusted)
    assert handshake(again, "cats.localhost") == "cats.localhost"


@pytest.mark.parametrize("wrong", [0.0, -400 * DAY, -1 * DAY, 100 * DAY, 3600 * DAY, 20_000 * DAY], ids=str)
@pytest.mark.parametrize("at_creation", [True, False])
def test_a_clock_that_is_wrong_for_a_while_changes_no_authority(
    home: Home, now: float, wrong: float, at_creation: bool
) -> None:
    """Neither a clock without a battery (1970), nor one that is behind or ahead. Once it is right,
    clients that trusted the authority before still do."""
    then = now + wrong if wrong else 0.0
    trusted = certificates.ensure(home, HOSTS, then if at_creation else now).ca_file.read_bytes()
    authority = {name: files(home)[name] for name in ("ca.pem", "ca.key")}
    certificates.ensure(home, HOSTS, then)
    right = certificates.ensure(home, HOSTS, now)
    assert {name: files(home)[name] for name in authority} == authority
    right.bundle_file.write_bytes(trusted)
    assert handshake(right, "localhost") == "localhost"


@pytest.mark.parametrize(
    ("name", "permitted"),
    [
        *((name, True) for name in ("localhost", "cats.localhost", "box", "a.box", "ml.test", "cats.ml.test")),
        *((name, True) for name in ("127.8.8.8", "203.0.113.8", "::1")),
        *((name, False) for name in ("login.microsoftonline.com", "test", "xml.test", "box.example")),
    ],
)
def test_the_authority_can_pretend_to_be_nobody_else(home: Home, now: float, name: str, permitted: bool) -> None:
    """Its key and OpenSSL make a certificate for any name. Clients accept those of this server."""
    own = (*HOSTS, "*.ml.test")
    made = certificates.ensure(home, own, now)
    forged = forge(home, name, now)
    if permitted:
        assert handshake(forged, name) == name
        assert handshake(certificates.ensure(home, (*own, name), now), name) == name
        return
    with pytest.raises(ssl.SSLCertVerificationError, match="permitted subtree violation"):
        handshake(forged, name)
    before = files(home)
    with pytest.raises(Error, match=f"does not permit {name}, only box, localhost, ml.test") as caught:
        certificates.ensure(home, (*own, name), now)
    assert f"rm {home.certificates}/ca.pem {home.certificates}/ca.key" in (caught.value.hint or "")
    assert files(home) == before
    # What nobody has chosen is left out instead, such as the machine's name in another network.
    assert certificates.ensure(home, own, now, [name]) == made
    assert files(home) == before


def test_grpc_accepts_the_certificate(home: Home, now: float) -> None:
    """Its TLS is BoringSSL's, which knows no constraint on addresses."""
    made = certificates.ensure(home, (*HOSTS, "*.ml.test"), now)
    pair = (made.key_file.read_bytes(), made.certificate_file.read_bytes())
    server = grpc.server(ThreadPoolExecutor(1))
    port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([pair]))
    server.start()
    try:
        trust = grpc.ssl_channel_credentials(made.ca_file.read_bytes())
        for name in ("127.0.0.1", "localhost", "box", "cats.ml.test"):
            options = [("grpc.ssl_target_name_override", name)]
            with grpc.secure_channel(f"127.0.0.1:{port}", trust, options) as channel:
                grpc.channel_ready_future(channel).result(60)
    finally:
        server.stop(None)


def test_an_authority_of_an_earlier_release_is_kept(home: Home, now: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without constraints, and valid for ten years. Nobody has to trust another one."""
    monkeypatch.setattr(certificates.name_constraints, "permitting", lambda _: x509.PolicyConstraints(0, None))
    monkeypatch.setattr(certificates, "AUTHORITY_UNTIL", datetime.fromtimestamp(now + 80 * DAY, timezone.utc))
    before = certificates.ensure(home, HOSTS, now).ca_file.read_bytes()
    monkeypatch.undo()
    made = certificates.ensure(home, (*HOSTS, "elsewhere.test"), now)
    assert made.ca_file.read_bytes() == before


def forge(home: Home, name: str, now: float) -> certificates.Certificates:
    """What somebody with the authority's key can make."""
    made = home.certificates
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(certificates.name_constraints, "permits", lambda *_: True)
        elsewhere = Home(home.root / "forger")
        elsewhere.create()
        for path in ("ca.pem", "ca.key"):
            (elsewhere.certificates / path).write_bytes((made / path).read_bytes())
        return certificates.ensure(elsewhere, [name], now)


def test_the_bundle_is_the_systems_roots_and_ours_and_does_not_grow(
    home: Home, now: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = certificates.ensure(home, HOSTS, now)
    monkeypatch.setenv("SSL_CERT_FILE", str(made.bundle_file))
    certificates.ensure(home, HOSTS, now)
    bundle = made.bundle_file.read_bytes()
    assert bundle == certificates.system_roots() + made.ca_file.read_bytes()
    assert bundle.count(b"BEGIN CERTIFICATE") == certificates.system_roots().count(b"BEGIN CERTIFICATE") + 1


def test_a_host_that_no_certificate_can_name_is_refused(home: Home, now: float) -> None:
    with pytest.raises(Error, match="neither a host name nor an IP address"):
        certificates.ensure(home, ["a" * 64], now)


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "::1", "box"])
def test_strict_clients_accept_each_name(home: Home, now: float, name: str) -> None:
    assert handshake(certificates.ensure(home, HOSTS, now), name) == name


@pytest.mark.parametrize(("name", "accepted"), [("cats.ml.test", True), ("a.cats.ml.test", False), ("ml.test", False)])
def test_strict_clients_accept_each_name_of_a_domain(home: Home, now: float, name: str, accepted: bool) -> None:
    made = certificates.ensure(home, (*HOSTS, "*.ml.test"), now)
    if accepted:
        assert handshake(made, name) == name
        return
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        handshake(made, name)


def test_strict_clients_refuse_another_name(home: Home, now: float) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        handshake(certificates.ensure(home, HOSTS, now), "elsewhere")


def handshake(made: certificates.Certificates, name: str) -> str:
    """A TLS handshake in memory under the strictest rules that Python knows; the name that was
    accepted."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(made.certificate_file, made.key_file)
    client = ssl.create_default_context(cafile=str(made.bundle_file))
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking = client.wrap_bio(back, there, server_hostname=name)
    answering = server.wrap_bio(there, back, server_side=True)
    waiting = [asking, answering]
    for side in turns(waiting):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
        waiting.remove(side)
    return str(asking.server_hostname)


def turns(waiting: list[ssl.SSLObject]) -> Iterator[ssl.SSLObject]:
    """One side after the other, as long as any is waiting."""
    for _ in range(10):
        yield from list(waiting)
    assert not waiting
