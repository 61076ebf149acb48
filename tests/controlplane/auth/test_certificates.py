"""Our own authority: what it signs, when it signs anew, and that strict clients accept it."""

from __future__ import annotations

import ssl
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

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
        (1, (*HOSTS, "other"), True),
        (1, HOSTS[:2], True),
        (1, (*HOSTS, "*.ml.test"), True),
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


@pytest.mark.parametrize("lost", ["ca.pem", "ca.key", "server.pem", "server.key", "bundle.pem"])
@pytest.mark.parametrize("damage", [b"", None])
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


def test_an_authority_that_ends_soon_is_replaced(home: Home, now: float) -> None:
    certificates.ensure(home, HOSTS, now)
    before = files(home)["ca.pem"]
    certificates.ensure(home, HOSTS, now + 3600 * DAY)
    assert files(home)["ca.pem"] != before


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
