"""Arguments over environment over defaults, and refusals that name the setting."""

from __future__ import annotations

from pathlib import Path

import pytest

from amphitrite.controlplane import addresses, settings
from amphitrite.controlplane.core.rules import Bounds
from amphitrite.schemas.errors import Error


def test_defaults(tmp_path: Path) -> None:
    chosen = settings.read({"ML_HOME": str(tmp_path)})
    assert (chosen.api_url, chosen.scoring_url) == ("https://127.0.0.1:8443", "https://127.0.0.1:9443")
    assert (chosen.subscription, chosen.resource_group, chosen.workspace) == ("local", "local", "local")
    assert chosen.database_url == f"sqlite:///{tmp_path}/amphitrite.db"
    assert chosen.limits.bounds == Bounds()


def test_arguments_win_over_the_environment(tmp_path: Path) -> None:
    environment = {"ML_HOME": "/nowhere", "ML_PORT": "1", "ML_HOST": "a", "ML_LIMIT_INSTANCES_PER_DEPLOYMENT": "70"}
    chosen = settings.read(environment, home=tmp_path, port=2)
    assert (chosen.home.root, chosen.host, chosen.port) == (tmp_path, "a", 2)
    assert chosen.limits.bounds.instances_per_deployment == 70


def test_a_password_in_the_databases_url_is_not_shown(tmp_path: Path) -> None:
    assert "secret" not in repr(settings.read({"ML_DATABASE_URL": "postgresql://u:secret@h/d"}, home=tmp_path))


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"ML_PORT": "70000"}, "port is 70000; allowed: 1 to 65535"),
        ({"ML_PORT": "9443"}, "port and scoring-port are both 9443"),
        ({"ML_PORT": "many"}, "port is 'many'; a whole number is needed"),
        ({"ML_RUNTIME": "magic"}, "runtime 'magic' is not offered; allowed: local"),
        ({"ML_LIMIT_JSON_BODY_BYTES": "0"}, "ML_LIMIT_JSON_BODY_BYTES is 0; allowed: 1 and more"),
    ],
)
def test_refusals(environment: dict[str, str], message: str) -> None:
    with pytest.raises(Error) as caught:
        settings.read(environment)
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "https://127.0.0.1:1"),
        ("::1", "https://[::1]:1"),
        ("box.lan", "https://box.lan:1"),
    ],
)
def test_urls(host: str, url: str) -> None:
    assert addresses.url(host, 1) == url


def test_a_wildcard_is_called_by_the_machines_name_and_covered_by_every_address() -> None:
    import socket

    assert addresses.url("0.0.0.0", 1) == f"https://{socket.gethostname()}:1"
    covered = set(addresses.certificate_hosts("0.0.0.0"))
    assert {"localhost", "127.0.0.1", "::1", socket.gethostname()} <= covered
    assert "0.0.0.0" not in covered
    assert {"10.1.2.3", "other"} <= set(addresses.certificate_hosts("10.1.2.3", ("other",)))
