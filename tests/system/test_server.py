"""Starting and stopping: what is left behind, what is refused, and two homes beside each other."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from ..waiting import wait_until
from .models import INFER, REQUEST
from .product import Product, free_ports

pytestmark = pytest.mark.serving


def open_port(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_stop_leaves_no_process_no_port_and_no_socket(fresh: Product) -> None:
    fresh.endpoint()
    fresh.deploy("blue", "tiny:1", "--all-traffic")
    assert fresh.instances()
    fresh.run("server", "stop")
    assert fresh.left_over() == []
    assert [p for p in (fresh.port, fresh.scoring_port) if open_port(p)] == []
    assert [p for p in fresh.home.rglob("*") if p.is_socket()] == []
    gone = fresh.run("online-endpoint", "list", check=False)
    assert (gone.returncode, "ml server start -d" in gone.stderr) == (3, True)

    # What was wanted is still wanted: the next start serves it again.
    fresh.start()
    state = ("online-deployment", "show", "-n", "blue", "-e", "cats", "--query", "provisioning_state", "-o", "tsv")
    key = fresh.keys()[0]
    wait_until(lambda: fresh.request(INFER, key=key, body=REQUEST).status == 200, "serving after a restart")
    assert fresh.run(*state).stdout == "Succeeded\n"


def test_keep_serving_ends_only_the_control_plane(fresh: Product) -> None:
    fresh.endpoint()
    fresh.deploy("blue", "tiny:1", "--all-traffic")
    key, before = fresh.keys()[0], fresh.instances()
    fresh.run("server", "stop", "--keep-serving")
    assert fresh.request(INFER, key=key, body=REQUEST).status == 200
    fresh.start()
    assert fresh.instances() == before
    assert fresh.request(INFER, key=key, body=REQUEST).status == 200


def test_two_homes_side_by_side(fresh: Product, tmp_path: Path) -> None:
    other = Product(tmp_path / "other")
    try:
        other.start()
        other.endpoint()
        fresh.endpoint()
        assert other.request(INFER, key=fresh.keys()[0], body=REQUEST).status == 401
        assert other.request(INFER, key=other.keys()[0], body=REQUEST).error["code"] == "NoTraffic"
        other.run("server", "stop")
        assert fresh.request(INFER, key=fresh.keys()[0], body=REQUEST).error["code"] == "NoTraffic"
    finally:
        other.destroy()


def test_a_used_port_is_named_and_nothing_changes(tmp_path: Path) -> None:
    product = Product(tmp_path)
    [third] = free_ports(1)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        for ports in ((port, third), (third, port)):
            refused = product.run(
                "server", "start", "-d", "--port", str(ports[0]), "--scoring-port", str(ports[1]), check=False
            )
            assert refused.returncode == 1
            assert f"port {port} on 127.0.0.1 is used" in refused.stderr
    assert product.left_over() == []
    assert not (product.home / "amphitrite.db").exists()
    product.destroy()


def test_environment_for_unmodified_clients(shared: Product) -> None:
    found = json.loads(shared.run("server", "env", "--shell", "json").stdout)
    assert set(found) == {
        "AZUREML_DEV_URL_MFE", "IDENTITY_ENDPOINT", "IDENTITY_HEADER", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE",
        "CURL_CA_BUNDLE", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "ML_SUBSCRIPTION", "ML_RESOURCE_GROUP", "ML_WORKSPACE",
    }  # fmt: skip
    status = shared.json("server", "status")
    assert status["state"] == "running"
    assert status["api_url"] == found["AZUREML_DEV_URL_MFE"]
    assert status["pid"] == shared.pid("server.json")
