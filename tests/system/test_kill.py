"""``kill -9`` of each process, in each phase of a change: nothing is lost, nobody notices at the
scoring address."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ..waiting import wait_until
from .conftest import register
from .killing import CONNECTIONS, RETRY, kill_instances
from .models import INFER, REQUEST
from .product import Product, running

pytestmark = [pytest.mark.serving, pytest.mark.early]

KILLS = int(os.environ.get("AMPHITRITE_LOAD_KILLS", "1"))


@contextmanager
def scoring(product: Product, path: str = INFER) -> Iterator[Counter[object]]:
    """Requests one after another in the background, with a breath between them: the cores are there
    for the change that is looked at. Counts status codes, and exceptions by name."""
    key, seen, stop = product.keys()[0], Counter[object](), threading.Event()

    def ask() -> None:
        while not stop.is_set():
            try:
                seen[product.request(path, key=key, body=REQUEST).status] += 1
            except OSError as exc:
                seen[type(exc).__name__] += 1
            stop.wait(0.02)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield seen
    finally:
        stop.set()
        thread.join()


def phase(product: Product, name: str) -> tuple[str, str] | None:
    """(state, phase) of a deployment in the product's own database."""
    rows = product.query("SELECT state, phase FROM deployments WHERE key = ?", name)
    return (rows[0][0], rows[0][1]) if rows else None


def settled(product: Product, name: str = "green") -> bool:
    """No operation is under way."""
    return not product.query("SELECT 1 FROM operations WHERE status = 'InProgress'")


#: A pass cut off at each of its effects is ``controlplane/test_faults.py``'s; here the processes
#: are real.
CHANGES = {
    "create": ("Starting", "Routing"),
    "update": ("Loading", "Ready"),
    "delete": ("Draining", "Stopping"),
}
PHASES = [(verb, name) for verb, names in CHANGES.items() for name in names]


@pytest.mark.parametrize(("verb", "at"), PHASES, ids=[f"{v}-{p}" for v, p in PHASES])
def test_the_control_plane_dies_in_a_phase(serving: Product, verb: str, at: str) -> None:
    """Blue serves all along; green is created, updated or deleted, and the control plane is killed
    as soon as that operation has reached the phase (or, where the phase was over within a poll,
    right after it)."""
    if verb != "create":
        serving.deploy("green", "tiny:2")
    with scoring(serving) as seen:
        before = serving.query("SELECT count(*) FROM operations")[0][0]
        match verb:
            case "create":
                serving.deploy("green", "tiny:2", "--no-wait")
            case "update":
                serving.deploy("green", "tiny:3", "--no-wait", verb="update")
            case _:
                serving.run("online-deployment", "delete", "-n", "green", "-e", "cats", "-y", "--no-wait")
        assert serving.query("SELECT count(*) FROM operations")[0][0] > before
        wait_until(lambda: reached(serving, verb, at), f"{verb} reaches {at}")
        serving.kill_control_plane()
        wait_until(lambda: sum(seen.values()) > 20, "requests go on without a control plane")
        serving.start()
        wait_until(lambda: settled(serving), f"{verb} ends")
    assert set(seen) == {200}, seen
    if verb == "delete":
        wait_until(lambda: len(serving.instances()) == 1, "green's instance is gone")
        assert phase(serving, "green") is None
    else:
        wait_until(lambda: len(serving.instances()) == 2, "blue and green, and nothing else")
        answer = serving.request(
            INFER, key=serving.keys()[0], body=REQUEST, headers={"azureml-model-deployment": "green"}
        )
        assert (answer.status, answer.deployment) == (200, "green")
        serving.run("online-deployment", "delete", "-n", "green", "-e", "cats", "-y")
    wait_until(lambda: len(list(serving.home.glob("instances/*"))) == 1, "no orphan's record")


def reached(product: Product, verb: str, at: str) -> bool:
    """The newest operation has noted the phase, or is over."""
    rows = product.query("SELECT phases, status FROM operations WHERE verb = ? ORDER BY started_at DESC LIMIT 1", verb)
    return bool(rows) and (f'"{at}"' in rows[0][0] or rows[0][1] != "InProgress")


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory, repositories: object) -> Iterator[Product]:
    """A product of this module's own, with blue serving everything."""
    for product in running(tmp_path_factory.mktemp("kill")):
        register(product, repositories)  # type: ignore[arg-type]
        product.endpoint()
        product.deploy("blue", "tiny:1", "--all-traffic")
        yield product


def test_envoy_dies_while_the_control_plane_is_down(serving: Product) -> None:
    key = serving.keys()[0]
    serving.kill_control_plane()
    serving.kill(serving.pid("dataplane/envoy.json"))

    def serves() -> bool:
        try:
            return serving.request(INFER, key=key, body=REQUEST).status == 200
        except OSError:
            return False

    wait_until(serves, "serving again")
    serving.start()


def test_the_agent_dies(serving: Product) -> None:
    with scoring(serving) as seen:
        envoy = serving.pid("dataplane/envoy.json")
        serving.kill(serving.pid("dataplane/agent.json"))
        serving.deploy("green", "tiny:2", "--all-traffic")
        serving.traffic(blue=100)
        serving.run("online-deployment", "delete", "-n", "green", "-e", "cats", "-y")
        assert serving.pid("dataplane/envoy.json") == envoy
    assert set(seen) == {200}, seen


def test_an_instance_dies_and_the_other_serves_on(serving: Product, tmp_path: Path) -> None:
    """One of two, ``AMPHITRITE_LOAD_KILLS`` times for each kind of retries, under load."""
    for retry in RETRY:
        seen = kill_instances(serving, tmp_path, "tiny:1", KILLS, retry)
        print(f"{KILLS} kills, retry {retry}, {seen.requests} requests: {seen.results}")
        assert seen.requests > KILLS
        if retry == "lost-requests":
            assert seen.failed == {}
        else:
            results = seen.results.values()
            assert sum(result["failed"] for result in results) <= KILLS * CONNECTIONS, seen.failed
            assert {s for result in results for s in result["statuses"]} <= {"200", "503"}, seen.failed
            assert not any(result["connection_errors"] for result in results), seen.failed
    serving.deploy("blue", "tiny:1", verb="update", instance_count=1)


def test_a_broken_model_fails_with_tritons_words_and_others_serve_on(serving: Product) -> None:
    with scoring(serving) as seen:
        failed = serving.run("online-deployment", "create", "-f", broken_document(serving), check=False)
        assert failed.returncode == 1
        assert "tiny" in failed.stderr
        assert "model.onnx" in failed.stderr or "failed to load" in failed.stderr
        shown = serving.json("online-deployment", "show", "-n", "bad", "-e", "cats")
        assert shown["provisioning_state"] == "Failed"
        logs = serving.run("online-deployment", "get-logs", "-n", "bad", "-e", "cats", "-o", "tsv").stdout
        assert "failed to load" in logs
        serving.run("online-deployment", "delete", "-n", "bad", "-e", "cats", "-y")
    assert set(seen) == {200}, seen


def broken_document(product: Product) -> str:
    return product.file(
        "bad.yml",
        "name: bad\nendpoint_name: cats\nmodel: azureml:tiny:4\ninstance_type: Standard_DS3_v2\ninstance_count: 1\n",
    )
