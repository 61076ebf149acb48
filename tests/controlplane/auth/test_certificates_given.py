"""TLS from files of others: what is taken from them, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from amphitrite.controlplane.auth import provided_certificates
from amphitrite.controlplane.settings.home import Home
from amphitrite.schemas.errors import Error

from ...certificate import write_certificate


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.create()
    return home


@pytest.fixture
def given(tmp_path: Path) -> Path:
    """As a Secret of type kubernetes.io/tls is mounted."""
    directory = tmp_path / "given"
    directory.mkdir()
    chain, key = write_certificate(tmp_path)
    chain.rename(directory / "tls.crt")
    key.rename(directory / "tls.key")
    return directory


def test_an_authority_of_ones_own_is_what_clients_trust(given: Path, home: Home) -> None:
    (given / "ca.crt").write_bytes((given / "tls.crt").read_bytes())
    tls = provided_certificates.load(given, home)
    assert (tls.certificate_file, tls.key_file, tls.ca_file) == tuple(
        given / n for n in ("tls.crt", "tls.key", "ca.crt")
    )
    assert tls.bundle_file.read_bytes().endswith((given / "ca.crt").read_bytes())
    assert sorted(path.name for path in given.iterdir()) == ["ca.crt", "tls.crt", "tls.key"]


def test_without_an_authority_the_systems_roots_are_trusted(given: Path, home: Home) -> None:
    tls = provided_certificates.load(given, home)
    assert tls.ca_file == tls.bundle_file


def test_a_missing_file_is_named(given: Path, home: Home) -> None:
    (given / "tls.key").unlink()
    with pytest.raises(Error, match=r"cannot read .*/tls\.key: No such file"):
        provided_certificates.load(given, home)


def test_a_key_of_another_certificate_is_refused(given: Path, home: Home, tmp_path: Path) -> None:
    _, other = write_certificate(tmp_path)
    other.rename(given / "tls.key")
    with pytest.raises(Error, match="not a certificate and its key"):
        provided_certificates.load(given, home)
