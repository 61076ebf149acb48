"""Starting and stopping: what is left behind, what is refused, and two homes beside each other."""

from __future__ import annotations

import json
import os
import pty
import select
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..ports import free_ports
from ..waiting import wait_until
from .conftest import register
from .models import INFER, REQUEST
from .product import Product, running

pytestmark = pytest.mark.serving


def open_port(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory, repositories: Path) -> Iterator[Product]:
    """A product of this module's own, whose endpoint ``cats`` serves. Each test leaves it so."""
    for product in running(tmp_path_factory.mktemp("server")):
        register(product, repositories, 1)
        product.endpoint()
        product.deploy("blue", "tiny:1", "--all-traffic")
        yield product


def test_stop_leaves_no_process_no_port_and_no_socket(serving: Product) -> None:
    assert serving.instances()
    serving.run("server", "stop")
    assert serving.left_over() == []
    assert [p for p in (serving.port, serving.scoring_port) if open_port(p)] == []
    assert [p for p in serving.home.rglob("*") if p.is_socket()] == []
    gone = serving.run("online-endpoint", "list", check=False)
    assert (gone.returncode, "ml server start -d" in gone.stderr) == (3, True)

    # What was wanted is still wanted: the next start serves it again.
    serving.start()
    state = ("online-deployment", "show", "-n", "blue", "-e", "cats", "--query", "provisioning_state", "-o", "tsv")
    key = serving.keys()[0]
    wait_until(lambda: serving.request(INFER, key=key, body=REQUEST).status == 200, "serving after a restart")
    assert serving.run(*state).stdout == "Succeeded\n"


def test_keep_serving_ends_only_the_control_plane(serving: Product) -> None:
    key, before = serving.keys()[0], serving.instances()
    said = serving.run("server", "stop", "--keep-serving").stderr
    assert said.endswith("stopped; Envoy and the instances go on answering\n")
    assert serving.request(INFER, key=key, body=REQUEST).status == 200
    state = serving.run("server", "status", "--query", "state", "-o", "tsv")
    assert (state.stdout, "go on answering: `ml server start -d` takes them over" in state.stderr) == (
        "stopped\n",
        True,
    )
    serving.start()
    assert serving.instances() == before
    assert serving.request(INFER, key=key, body=REQUEST).status == 200


def test_stopping_what_went_on_serving_says_so(serving: Product) -> None:
    serving.run("server", "stop", "--keep-serving")
    ended = "no control plane was running; stopped Envoy and the instances, which went on answering\n"
    assert serving.run("server", "stop").stderr.endswith(ended)
    assert serving.run("server", "stop").stderr.endswith("no control plane was running\n")
    assert serving.run("server", "status", "-o", "none").stderr == ""
    serving.start()


def test_a_terminal_is_told_what_runs_in_the_foreground(tmp_path: Path) -> None:
    """Started by hand, it says that it starts, where it is, how it ends, and that it ends."""
    product = Product(tmp_path)
    ports = ["--port", str(product.port), "--scoring-port", str(product.scoring_port)]
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvpe("ml", ["ml", "server", "start", *ports], product.environment)
    seen: list[bytes] = []

    def shows(text: str) -> bool:
        while select.select([terminal], [], [], 0)[0]:
            try:
                seen.append(os.read(terminal, 65536))
            except OSError:  # the process has ended
                break
        return text in b"".join(seen).decode(errors="replace")

    try:
        wait_until(lambda: shows("starting; Ctrl-C stops it and all instances"), "says that it starts")
        wait_until(lambda: shows(f"scoring: https://127.0.0.1:{product.scoring_port}"), "says where it is")
        os.write(terminal, b"\x03")
        wait_until(lambda: shows("stopping Envoy and the instances"), "says that it ends")
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert product.left_over() == []
    finally:
        os.close(terminal)
        product.destroy()


def test_two_homes_side_by_side(serving: Product, tmp_path: Path) -> None:
    other, key = Product(tmp_path / "other"), serving.keys()[0]
    try:
        other.start()
        other.endpoint()
        assert other.request(INFER, key=key, body=REQUEST).status == 401
        assert other.request(INFER, key=other.keys()[0], body=REQUEST).error["code"] == "NoTraffic"
        other.run("server", "stop")
        assert serving.request(INFER, key=key, body=REQUEST).status == 200
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
            assert f"port {port} on 127.0.0.1 is in use" in refused.stderr
    assert product.left_over() == []
    assert not (product.home / "amphitrite.db").exists()
    product.destroy()


def test_environment_for_unmodified_clients(shared: Product) -> None:
    found = json.loads(shared.run("server", "env", "--shell", "json").stdout)
    assert set(found) == {
        "AZUREML_DEV_URL_MFE", "IDENTITY_ENDPOINT", "IDENTITY_HEADER", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE",
        "CURL_CA_BUNDLE", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "NODE_EXTRA_CA_CERTS", "ML_SUBSCRIPTION",
        "ML_RESOURCE_GROUP", "ML_WORKSPACE",
    }  # fmt: skip
    status = shared.json("server", "status")
    assert status["state"] == "running"
    assert status["api_url"] == found["AZUREML_DEV_URL_MFE"]
    assert status["pid"] == shared.pid("server.json")
