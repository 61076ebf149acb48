"""Each part of a running release is taken away under load. Where there is a second of it, nobody
notices."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from ..system.models import REQUEST, adding
from ..waiting import wait_until
from .images import Images
from .node import Cluster
from .release import NAME, Release, installed
from .test_product import INFER

pytestmark = [pytest.mark.cluster, pytest.mark.early]
CONTROL_PLANE, PROXY, INSTANCE = (
    "app.kubernetes.io/component=controlplane",
    "app.kubernetes.io/component=dataplane",
    "app.kubernetes.io/component=instance",
)
#: Seconds within which another control plane leads.
TAKEOVER_S = 15.0
#: Seconds without a database; the product's claim is 30.
OUTAGE_S = float(os.environ.get("AMPHITRITE_OUTAGE_S", "3"))


@pytest.fixture(scope="module")
def release(cluster: Cluster, images: Images, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Release]:
    with serving(cluster, images, tmp_path_factory.mktemp("kills")) as release:
        yield release


@contextmanager
def serving(cluster: Cluster, images: Images, files: Path) -> Iterator[Release]:
    """A release whose endpoint ``cats`` is served by two instances."""
    with installed(cluster, images, files) as release:
        for version in (1, 2):
            path = str(adding(release.files / str(version), version))
            release.run("model", "create", "-n", "tiny", "-v", str(version), "-t", "triton_model", "-p", path)
        release.endpoint()
        # What was in flight on a killed instance runs again: these models keep no state.
        again = {"amphitrite.retry": "lost-requests"}
        release.deploy("blue", "tiny:1", "--all-traffic", instance_count=2, properties=again)
        yield release
        all_ready(release)
        release.run("online-endpoint", "delete", "-n", "cats", "-y")


@pytest.fixture(autouse=True)
def whole(release: Release) -> None:
    """Everything that the test before took away is back."""
    all_ready(release)


def all_ready(release: Release) -> None:
    for selector in (CONTROL_PLANE, PROXY, INSTANCE):
        wait_until(lambda s=selector: len(release.ready(s)) == 2, f"two of {selector}", 120)


def unnoticed(result: dict[str, Any]) -> None:
    print(result)
    assert result["requests"] and result["failed"] == 0, result


def back(release: Release, selector: str, gone: str) -> None:
    """Two are ready again, and what was taken away is not the same any more."""

    def whole() -> bool:
        ready = release.ready(selector)
        return len(ready) == 2 and (gone not in ready or release.restarts(gone) > 0)

    wait_until(whole, f"two of {selector}", 120)


def test_an_instance(release: Release) -> None:
    with release.load(INFER, REQUEST) as result:
        victim = release.ready(INSTANCE)[0]
        release.cluster.kubectl("delete", "pod", victim, "-n", release.namespace)
        back(release, INSTANCE, victim)
    unnoticed(result)


def test_a_killed_instance(release: Release) -> None:
    """What was in flight on it is tried again elsewhere."""
    with release.load(INFER, REQUEST) as result:
        victim = release.ready(INSTANCE)[0]
        release.kill(victim)
        back(release, INSTANCE, victim)
    unnoticed(result)


def test_a_killed_proxy(release: Release) -> None:
    """What was in flight through it is lost, and nothing else: each client counts one broken
    connection at most.

    Connections that are refused are counted apart: how many depends on when the cluster hears that
    the pod is gone.
    """
    with release.load(INFER, REQUEST, connections=8) as result:
        victim = release.ready(PROXY)[0]
        release.kill(victim)
        back(release, PROXY, victim)
    print(result)
    assert result["failed"] == sum(result["connection_errors"].values()), result
    assert result["failed"] - result["connection_errors"].get("ConnectionRefusedError", 0) <= 8, result


def test_the_leading_control_plane_is_killed(release: Release) -> None:
    with release.load(INFER, REQUEST) as result:
        former = wait_until(release.leader, "one leads")
        victim = former.rpartition("_")[0]
        release.kill(victim)
        killed = time.monotonic()
        wait_until(lambda: release.leader() not in ("", former), "another leads", TAKEOVER_S)
        print(f"takeover after a kill: {time.monotonic() - killed:.1f} s")
        release.put_traffic("cats", {"blue": 100})
        back(release, CONTROL_PLANE, victim)
    unnoticed(result)


def test_the_leading_control_plane_is_told_to_stop(release: Release) -> None:
    """While an instance is being replaced: the other goes on with it."""
    with release.load(INFER, REQUEST) as result:
        former = wait_until(release.leader, "one leads")
        victim = former.rpartition("_")[0]
        release.deploy("blue", "tiny:2", "--no-wait", verb="update", instance_count=2)
        release.cluster.kubectl("delete", "pod", victim, "-n", release.namespace, "--wait=false")
        told = time.monotonic()
        wait_until(lambda: release.leader() not in ("", former), "another leads", TAKEOVER_S)
        print(f"takeover after a graceful stop: {time.monotonic() - told:.1f} s")
        wait_until(lambda: state(release) == "Succeeded", "the replacement is done", 120)
        back(release, CONTROL_PLANE, victim)
    unnoticed(result)


def state(release: Release) -> str:
    """Of the deployment, through whichever control plane answers."""
    try:
        answer = release.rest("GET", "onlineEndpoints/cats/deployments/blue")
    except httpx.TransportError:
        return ""
    return str(answer.json()["properties"]["provisioningState"]) if answer.is_success else ""


def test_both_control_planes(release: Release) -> None:
    """And a proxy that starts meanwhile serves, from the table that the release keeps for it."""
    release.cluster.kubectl("scale", "deployment", "-n", release.namespace, "-l", CONTROL_PLANE, "--replicas=0")
    try:
        wait_until(lambda: not release.pods(CONTROL_PLANE), "no control plane", 90)
        with release.load(INFER, REQUEST) as result:
            victim = release.ready(PROXY)[0]
            release.cluster.kubectl("delete", "pod", victim, "-n", release.namespace, "--wait=true")
            back(release, PROXY, victim)
        unnoticed(result)
    finally:
        release.cluster.kubectl("scale", "deployment", "-n", release.namespace, "-l", CONTROL_PLANE, "--replicas=2")
        scaled = time.monotonic()
        wait_until(lambda: len(release.ready(CONTROL_PLANE)) == 2, "both are back", 90)
        print(f"two control planes are ready: {time.monotonic() - scaled:.1f} s")


def test_an_upgrade_and_a_rollback(release: Release) -> None:
    """Every pod of both planes is replaced twice."""
    with release.load(INFER, REQUEST) as result:
        changed = {"podAnnotations": {"example.org/change": "1"}}
        for component in ("controlplane", "dataplane"):
            release.given[component] |= changed
        release.install(release.given, verb="upgrade")
        rolled_out(release)
        release.cluster.helm("rollback", NAME, "-n", release.namespace, "--wait", "--timeout", "180s")
        rolled_out(release)
    unnoticed(result)


def rolled_out(release: Release) -> None:
    """Helm itself waits for some of the new pods only."""
    for selector in (CONTROL_PLANE, PROXY):
        release.cluster.kubectl("rollout", "status", "deployment", "-n", release.namespace, "-l", selector)


def test_the_database(release: Release) -> None:
    """Stopped for a while: requests are answered, changes are refused clearly and work again
    afterwards."""
    with release.load(INFER, REQUEST) as result:
        release.postgresql.stop()
        try:
            refused = release.run("online-endpoint", "show", "-n", "cats", check=False)
            assert refused.returncode == 1, refused.stderr
            assert "the database failed" in refused.stderr
            assert "hint: " in refused.stderr
            ends = time.monotonic() + OUTAGE_S
            wait_until(lambda: time.monotonic() > ends, "the outage has lasted", OUTAGE_S + 1)
        finally:
            release.postgresql.start()
        wait_until(
            lambda: release.run("online-endpoint", "show", "-n", "cats", check=False).returncode == 0,
            "it answers again",
            60,
        )
        all_ready(release)
        release.put_traffic("cats", {"blue": 100})
    unnoticed(result)
