"""A kubeconfig leaves the machine whole, or not at all."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
import yaml

from amphitrite.cli.documents import kubeconfig_files
from amphitrite.schemas.errors import Error

CONFIG = """
apiVersion: v1
clusters:
- name: c
  cluster: {server: https://cluster, certificate-authority: ca.pem}
users:
- name: u
  user: {client-certificate: me.pem, client-key: me.key, client-key-data: a2VwdA==}
- name: v
  user: {tokenFile: token}
current-context: x
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    for name in ("ca.pem", "me.pem", "me.key", "token"):
        (tmp_path / name).write_text(f"{name}\n")
    (tmp_path / "config").write_text(CONFIG)
    return tmp_path


def test_files_are_put_inside(directory: Path) -> None:
    found = yaml.safe_load(kubeconfig_files.embed_files(directory / "config"))
    assert found["clusters"][0]["cluster"] == {
        "server": "https://cluster",
        "certificate-authority-data": base64.b64encode(b"ca.pem\n").decode(),
    }
    assert found["users"] == [
        {
            "name": "u",
            "user": {
                "client-certificate-data": base64.b64encode(b"me.pem\n").decode(),
                "client-key-data": "a2VwdA==",
            },
        },
        {"name": "v", "user": {"token": "token"}},
    ]
    assert found["current-context"] == "x"


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("[", "InvalidDocument", "is not YAML"),
        ("a: b", "InvalidDocument", "is not a kubeconfig: it has no clusters"),
        (
            CONFIG.replace("tokenFile: token", "exec: {command: aws}"),
            "InvalidDocument",
            "logs in with a program (exec)",
        ),
        (CONFIG.replace("ca.pem", "nowhere"), "LocalFileError", "nowhere: No such file or directory"),
        (CONFIG + "#" * (1 << 20), "LimitExceeded", "is too large; allowed: 1048576 bytes"),
    ],
)
def test_what_cannot_travel(directory: Path, text: str, code: str, message: str) -> None:
    (directory / "config").write_text(text)
    with pytest.raises(Error) as caught:
        kubeconfig_files.embed_files(directory / "config")
    assert caught.value.code == code
    assert message in caught.value.message


def test_what_is_no_text(directory: Path) -> None:
    (directory / "config").write_bytes(b"\xff")
    with pytest.raises(Error, match="it is not UTF-8"):
        kubeconfig_files.embed_files(directory / "config")
