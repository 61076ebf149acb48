"""Which control plane is talked to, and with which credentials."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from amphitrite.cli.session import connection
from amphitrite.cli.session.connection import Server
from amphitrite.cli.terminal import configured_defaults
from amphitrite.schemas.errors import Error


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text("secret\n")
    state = {
        "state": "running",
        "api_url": "https://127.0.0.1:1",
        "token_file": str(tmp_path / "token"),
        "ca_file": str(tmp_path / "ca.pem"),
    }
    (tmp_path / "server.json").write_text(json.dumps(state))
    return tmp_path


def own(home: Path, token: str) -> Server:
    return Server("https://127.0.0.1:1", token, home / "ca.pem", local=True)


ELSEWHERE = Server("https://elsewhere", None, None, local=False)
ELSEWHERE_WITH_TOKEN = Server("https://elsewhere", "mine", None, local=False)


def test_the_home_of_the_environment(home: Path) -> None:
    environ = {"ML_HOME": str(home)}
    assert connection.find_server(None, environ) == own(home, "secret")
    assert connection.find_server("https://127.0.0.1:1/", environ) == own(home, "secret")
    assert connection.find_server(None, {**environ, "ML_TOKEN": "mine"}) == own(home, "mine")


def test_an_address_comes_before_the_home_and_never_gets_its_token(home: Path) -> None:
    environ = {"ML_HOME": str(home), "ML_SERVER_URL": "https://elsewhere"}
    assert connection.find_server(None, environ) == ELSEWHERE
    assert connection.find_server("https://elsewhere/", {"ML_HOME": str(home)}) == ELSEWHERE
    assert connection.find_server("https://127.0.0.1:1", environ) == own(home, "secret")
    assert connection.find_server(None, {**environ, "ML_TOKEN": "mine"}) == ELSEWHERE_WITH_TOKEN


def test_a_server_elsewhere_has_an_authority_of_its_own(home: Path) -> None:
    environ = {"ML_HOME": str(home), "ML_SERVER_URL": "https://elsewhere", "ML_CA_FILE": "/its/ca.pem"}
    named = Server("https://elsewhere", None, Path("/its/ca.pem"), local=False)
    assert (connection.find_server(None, environ), connection.find_remote_server(None, environ)) == (named, named)
    # This home's is not judged by it, and is not "elsewhere" when it is named.
    assert connection.find_server("https://127.0.0.1:1", environ) == own(home, "secret")
    assert connection.find_remote_server("https://127.0.0.1:1", environ) is None
    assert connection.find_remote_server(None, {"ML_HOME": str(home)}) is None


@pytest.mark.parametrize(
    ("environ", "url"),
    [({}, "https://127.0.0.1:8443"), ({"ML_HOST": "10.0.0.1", "ML_PORT": "9"}, "https://10.0.0.1:9")],
)
def test_nothing_was_started(environ: dict[str, str], url: str, tmp_path: Path) -> None:
    with pytest.raises(Error) as caught:
        connection.find_server(None, {"ML_HOME": str(tmp_path), **environ})
    assert caught.value == Error("ServerUnreachable", f"no control plane at {url}", hint="run `ml server start -d`")


def test_tokens_travel_encrypted_only(home: Path) -> None:
    with pytest.raises(Error) as caught:
        connection.find_server("http://127.0.0.1:1", {"ML_HOME": str(home)})
    assert caught.value.code == "UsageError"


@pytest.mark.parametrize("text", ["", "{", "[]", "{}"])
def test_a_damaged_file_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / "server.json").write_text(text)
    with pytest.raises(Error) as caught:
        connection.find_server(None, {"ML_HOME": str(tmp_path)})
    assert caught.value.code == "LocalFileError" and str(tmp_path / "server.json") in caught.value.message


@pytest.mark.parametrize("token", [b"a\xb0c\n", b"a\x03c\n", b"a\nc\n"])
def test_a_damaged_token_is_named(tmp_path: Path, token: bytes) -> None:
    (tmp_path / "token").write_bytes(token)
    state = {"api_url": "https://127.0.0.1:1", "token_file": f"{tmp_path}/token", "ca_file": f"{tmp_path}/ca.pem"}
    (tmp_path / "server.json").write_text(json.dumps(state))
    with pytest.raises(Error, match="is not one line of text") as caught:
        connection.find_server(None, {"ML_HOME": str(tmp_path)})
    assert caught.value.code == "LocalFileError" and caught.value.hint


@pytest.mark.parametrize("name", ["server.json", "token", "config"])
def test_a_home_of_somebody_else(name: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, *arguments: object, **more: object) -> io.BufferedIOBase:
        if self.name == name:
            raise PermissionError(13, "Permission denied", str(self))
        return real(self, *arguments, **more)

    # No file is closed to root, who may run the tests.
    real: Any = Path.open
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(Error) as caught:
        connection.find_server(None, {"ML_HOME": str(home)})
        configured_defaults.read({"ML_HOME": str(home)})
    message = f"cannot read {home / name}: permission denied"
    assert (caught.value.message, caught.value.hint) == (message, "set ML_HOME to a directory of yours")
