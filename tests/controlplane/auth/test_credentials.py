"""The control plane's own secrets."""

from __future__ import annotations

import stat
import string
from pathlib import Path

import pytest

from amphitrite.controlplane.auth import credentials
from amphitrite.controlplane.auth.random_text import random_text
from amphitrite.controlplane.settings.home import Home
from amphitrite.schemas.errors import Error


def test_secrets_are_made_once_and_read_by_the_owner_alone(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.create()
    first = credentials.ensure(home)
    (home.credentials / "token").chmod(0o644)
    assert credentials.ensure(home) == first
    paths = {path.name: path for path in home.credentials.iterdir()}
    assert sorted(paths) == ["agent-token", "fetch-key", "identity-header", "token"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in paths.values()} == {0o600}
    assert {len(path.read_text().strip()) for path in paths.values()} == {43}
    assert len({path.read_text() for path in paths.values()}) == 4
    assert first.token.reveal() not in repr(first)


def test_an_empty_file_is_filled(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.create()
    (home.credentials / "token").touch()
    assert credentials.ensure(home).token.reveal()


def test_random_text_needs_no_escaping() -> None:
    """Enough of it to have every character: none is missing but by one chance in 10 to the 68th."""
    assert set(random_text(10_000)) == set(string.ascii_letters + string.digits)
    assert [len(random_text(length)) for length in (1, 32)] == [1, 32]


FILES = ("token", "agent-token", "identity-header", "fetch-key")


def mounted(directory: Path, generation: int) -> Path:
    for name in FILES:
        (directory / name).write_text(f"{name}-{generation}\n")
    return directory


def test_secrets_of_others_are_read_and_renewed_ones_taken_over(tmp_path: Path) -> None:
    held = credentials.load(mounted(tmp_path, 1))
    assert not credentials.refresh(held, tmp_path)
    assert credentials.refresh(held, mounted(tmp_path, 2))
    assert (held.token.reveal(), held.identity_header.reveal()) == ("token-2", "identity-header-2")
    # Grants that pods hold were made with the former key.
    assert held.fetch_key.reveal() == "fetch-key-1"


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("spoilt", [None, b"", b"\xff\xfe"])
def test_a_secret_that_is_not_there_is_named_and_what_was_held_stays(
    tmp_path: Path, name: str, spoilt: bytes | None
) -> None:
    held = credentials.load(mounted(tmp_path, 1))
    mounted(tmp_path, 2)
    (tmp_path / name).unlink()
    if spoilt is not None:
        (tmp_path / name).write_bytes(spoilt)
    with pytest.raises(Error, match=name):
        credentials.refresh(held, tmp_path)
    assert held.token.reveal() == "token-1"
