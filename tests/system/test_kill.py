"""``kill -9`` of each process of the whole product: nothing is lost, nobody notices at the scoring
address."""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ..waiting import wait_until
from .conftest import register
from .killing import LOST_REQUESTS, kill_instances
from .models import INFER, REQUEST, adding
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


def settled(product: Product) -> bool:
    """No operation is under way."""
    return not product.query("SELECT 1 FROM operations WHERE status = 'InProgress'")


def loading(product: Product) -> bool:
    """The newest update has noted that its instance loads, or is over."""
    update = "SELECT phases, status FROM operations WHERE verb = 'update' ORDER BY started_at DESC LIMIT 1"
    rows = product.query(update)
    return bool(rows) and ('"Loading"' in rows[0][0] or rows[0][1] != "InProgress")


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory, repositories: object) -> Iterator[Product]:
    """A product of this module's own, with blue serving everything."""
    for product in running(tmp_path_factory.mktemp("kill")):
        register(product, repositories)  # type: ignore[arg-type]
        product.endpoint()
        product.deploy("blue", "tiny:1", "--all-traffic")
        yield product


def test_the_control_plane_dies_while_an_instance_loads(serving: Product) -> None:
    """The next one adopts what runs, ends the change, and stops what it has replaced. A pass that
    is cut off at each of its effects, of each kind of change, is ``controlplane/test_faults.py``'s;
    here the processes are real."""
    serving.deploy("green", "tiny:2")
    with scoring(serving) as seen:
        serving.deploy("green", "tiny:3", "--no-wait", verb="update")
        wait_until(lambda: loading(serving), "the update's instance loads")
        serving.kill_control_plane()
        before = sum(seen.values())
        wait_until(lambda: sum(seen.values()) > before + 20, "requests go on without a control plane")
        serving.start()
        wait_until(lambda: settled(serving), "the update ends")
    assert set(seen) == {200}, seen
    wait_until(lambda: len(serving.instances()) == 2, "blue and green, and nothing else")
    pinned = {"azureml-model-deployment": "green"}
    answer = serving.request(INFER, key=serving.keys()[0], body=REQUEST, headers=pinned)
    assert (answer.status, answer.deployment, json.loads(answer.body)["outputs"][0]["data"]) == (
        200,
        "green",
        [4, 5, 6, 7],
    )
    serving.run("online-deployment", "delete", "-n", "green", "-e", "cats", "-y")
    wait_until(lambda: len(list(serving.home.glob("instances/*"))) == 1, "no orphan's record")


def test_the_agent_dies(serving: Product) -> None:
    """The control plane starts another, which adopts Envoy: nobody notices, and the next change is
    in force."""
    former = serving.keys()[1]
    with scoring(serving) as seen:
        envoy = serving.pid("dataplane/envoy.json")
        serving.kill(serving.pid("dataplane/agent.json"))
        serving.run("online-endpoint", "regenerate-keys", "-n", "cats", "--key-type", "secondary")
        assert serving.pid("dataplane/envoy.json") == envoy
        answers = [serving.request(INFER, key=key, body=REQUEST).status for key in (former, serving.keys()[1])]
    assert answers == [401, 200]
    assert set(seen) == {200}, seen


def test_an_instance_dies_and_the_other_serves_on(serving: Product, tmp_path: Path) -> None:
    """One of two, ``AMPHITRITE_LOAD_KILLS`` times, under load. Which requests are sent again, and
    which are not, is ``dataplane/test_scoring.py``'s; the benchmark ``loss`` counts both."""
    seen = kill_instances(serving, tmp_path, "tiny:1", KILLS, LOST_REQUESTS)
    print(f"{KILLS} kills, {seen.requests} requests: {seen.results}")
    assert seen.requests > KILLS
    assert seen.failed == {}
    serving.deploy("blue", "tiny:1", verb="update", instance_count=1)


def test_a_broken_model_fails_with_tritons_words_and_others_serve_on(serving: Product) -> None:
    with scoring(serving) as seen:
        failed = serving.run("online-deployment", "create", "-f", broken_document(serving), check=False)
        assert failed.returncode == 1
        assert "tiny" in failed.stderr
        assert "model.onnx" in failed.stderr or "failed to load" in failed.stderr
        shown = serving.json("online-deployment", "show", "-n", "bad", "-e", "cats")
        assert shown["provisioning_state"] == "Failed"
        get_logs = ("online-deployment", "get-logs", "-n", "bad", "-e", "cats")
        everything = serving.run(*get_logs, "--all-instances", "--since", "1h").stdout
        assert everything.count("==> cats-bad-") >= 2 and "failed to load" in everything
        assert json.loads(serving.run(*get_logs, "--all-instances", "--json").stdout).startswith("==> cats-bad-")
        newest = serving.run(*get_logs)
        assert "==>" not in newest.stdout and "--all-instances prints all" in newest.stderr
        before = serving.run(*get_logs, "--previous").stdout
        assert "==>" not in before and "failed to load" in before
        serving.run("online-deployment", "delete", "-n", "bad", "-e", "cats", "-y")
    assert set(seen) == {200}, seen


def test_the_control_plane_dies_during_rollouts(serving: Product) -> None:
    """The next one goes on: what is as good gets all the traffic, and what fails loses it again. At
    each line of a step it is ``controlplane/api/test_rollouts.py``'s; here Envoy counts."""
    other = adding(serving.files / "other", 1, columns=3)
    serving.run("model", "create", "-n", "tiny", "-v", "5", "-t", "triton_model", "-p", str(other))
    settings = ("-n", "cats", "--steps", "50,100", "--bake", "1s", "--max-error-rate", "10%", "--alpha", "0.05")
    with scoring(serving) as seen:
        for name, model, state in (("green", "tiny:2", "Succeeded"), ("red", "tiny:5", "RolledBack")):
            serving.deploy(name, model)
            before = serving.json("online-endpoint", "show", "-n", "cats", "--query", "traffic")
            serving.run(*ROLLOUT, "start", "--to", name, *settings)
            wait_until(lambda name=name: f'"{name}": 50' in serving.query(TRAFFIC)[0][0], "the first step")
            serving.kill_control_plane()
            serving.start()
            watched = serving.run(*ROLLOUT, "status", "-n", "cats", "-w", check=False)
            assert (state in watched.stdout + watched.stderr, watched.returncode == 0) == (True, name == "green")
            traffic = serving.json("online-endpoint", "show", "-n", "cats", "--query", "traffic")
            assert traffic == ({"green": 100, "blue": 0} if name == "green" else {**before, "red": 0})
    newest = serving.json("online-endpoint", "traffic", "history", "-n", "cats")[0]
    assert (newest["cause"], newest["reason"].startswith("errors: ")) == ("rollout", True), newest
    # Only the model of the one that fails answered so; no request was lost.
    assert set(seen) == {200, 424}, seen


def test_wrong_answers_are_found_before_a_client_gets_one(serving: Product) -> None:
    wrong = adding(serving.files / "wrong", 3)
    serving.run("model", "create", "-n", "tiny", "-v", "6", "-t", "triton_model", "-p", str(wrong))
    serving.deploy("pink", "tiny:6")
    settings = ("--shadow", "10m", "--max-answer-difference", "0.5", "--answer-share", "100%")
    with scoring(serving) as seen:
        watched = serving.run(*ROLLOUT, "start", "-n", "cats", "--to", "pink", *settings, "-w", check=False)
    assert (watched.returncode, "answers that differ by more than 0.5: 100 %" in watched.stderr) == (1, True), watched
    shown = serving.json(*ROLLOUT, "status", "-n", "cats")
    assert (shown["state"], shown["percent"], set(shown["largest_differences"].values())) == ("RolledBack", 0, {1.0})
    assert set(seen) == {200}, seen


ROLLOUT = ("online-endpoint", "rollout")
TRAFFIC = "SELECT document FROM endpoints WHERE key = 'cats'"


def broken_document(product: Product) -> str:
    return product.file(
        "bad.yml",
        "name: bad\nendpoint_name: cats\nmodel: azureml:tiny:4\ninstance_type: Standard_DS3_v2\ninstance_count: 1\n",
    )
