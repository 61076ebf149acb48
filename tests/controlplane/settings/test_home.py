"""Where state may lie, and that it is its owner's alone."""

from __future__ import annotations

import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from amphitrite.controlplane.settings.home import Home
from amphitrite.schemas.errors import Error


@pytest.mark.parametrize("name", ["with space", "it's", "$(id)", "a;b", "a*"])
def test_a_path_that_a_shell_would_read_otherwise_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(Error, match="does not quote paths"):
        Home(tmp_path / name).require_shell_safe()


def test_every_directory_is_its_owners_alone(tmp_path: Path) -> None:
    home = Home(tmp_path / "a/home")
    home.create()
    assert {stat.S_IMODE(path.stat().st_mode) for path in (home.root, *home.root.iterdir())} == {0o700}


def test_a_place_where_nothing_can_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Error, match=r"cannot create .*/file") as caught:
        Home(tmp_path / "file/home").create()
    assert caught.value.code == "BadArgument"


def _open_to_all(path: Path) -> None:
    path.mkdir()
    path.chmod(0o777)


@pytest.mark.parametrize(
    "made", [_open_to_all, lambda path: path.symlink_to(path.parent)], ids=["open to all", "symbolic link"]
)
def test_sockets_are_not_put_where_somebody_else_may_write(
    made: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    home = Home(tmp_path / ("long" * 30))
    place = home.socket_directory("agent")
    place.rmdir()
    made(place)
    with pytest.raises(Error, match="not a private directory of this user"):
        home.socket_directory("agent")
