"""The control plane's own secrets."""

from __future__ import annotations

import stat
from pathlib import Path

from amphitrite.controlplane import credentials
from amphitrite.controlplane.home import Home


def test_secrets_are_made_once_and_read_by_the_owner_alone(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.create()
    first = credentials.ensure(home)
    (home.credentials / "token").chmod(0o644)
    assert credentials.ensure(home) == first
    paths = {path.name: path for path in home.credentials.iterdir()}
    assert sorted(paths) == ["agent-token", "identity-header", "token"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in paths.values()} == {0o600}
    assert {len(path.read_text().strip()) for path in paths.values()} == {43}
    assert len({path.read_text() for path in paths.values()}) == 3
    assert first.token.reveal() not in repr(first)


def test_an_empty_file_is_filled(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.create()
    (home.credentials / "token").touch()
    assert credentials.ensure(home).token.reveal()
