"""From an empty namespace to a prediction and back to an empty namespace, with the files that one
machine takes.

``AMPHITRITE_LOAD_REQUESTS`` sets how many requests the changes under load last for (default:
20,000).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from ..system.models import REQUEST, adding, broken
from ..waiting import wait_until
from .images import Images
from .node import Cluster
from .release import EXAMPLE, NAME, Release, installed

pytestmark = [pytest.mark.cluster, pytest.mark.early]
REQUESTS = int(os.environ.get("AMPHITRITE_LOAD_REQUESTS", "20000"))
INFER = "/endpoints/cats/v2/models/tiny/infer"


@pytest.fixture(scope="module")
def release(cluster: Cluster, images: Images, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Release]:
    with installed(cluster, images, tmp_path_factory.mktemp("release")) as release:
        roots = [*(adding(release.files / str(n), n) for n in (1, 2, 3)), broken(release.files / "broken")]
        for version, path in enumerate(map(str, roots), start=1):
            release.run("model", "create", "-n", "tiny", "-v", str(version), "-t", "triton_model", "-p", path)
        yield release


def test_the_example_with_the_same_files(release: Release) -> None:
    release.run("model", "create", "-f", str(EXAMPLE / "model.yml"))
    release.run("online-endpoint", "create", "-f", str(EXAMPLE / "endpoint.yml"))
    created = release.json("online-deployment", "create", "-f", str(EXAMPLE / "blue-deployment.yml"))
    assert created["provisioning_state"] == "Succeeded"
    release.run("online-endpoint", "update", "-n", "pictures", "--traffic", "blue=100")
    shown = release.json("online-endpoint", "show", "-n", "pictures")
    assert shown["scoring_uri"] == f"{release.scoring_url}/endpoints/pictures/"
    scored = subprocess.run(
        [sys.executable, str(EXAMPLE / "score.py"), "--scoring-uri", shown["scoring_uri"]],
        env={**release.environment, "AMPHITRITE_KEY": release.keys("pictures")[0]},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert scored.stdout.startswith("EGYPTIAN CAT 0.7"), scored.stderr
    release.run("online-endpoint", "delete", "-n", "pictures", "-y")
    wait_until(lambda: not release.pods("amphitrite.io/endpoint=pictures"), "its pods are gone")


def test_every_change_under_load(release: Release) -> None:
    """Blue to green and back, one instance to three to one, a replacement, a deletion: no request
    fails."""
    release.endpoint()
    release.deploy("blue", "tiny:1", "--all-traffic")
    release.deploy("green", "tiny:2")
    with release.load(INFER, REQUEST, at_least=REQUESTS, connections=8, think_ms=10) as result:
        changes = 0
        while changes < 12:
            release.put_traffic("cats", {"blue": 25 * (changes % 5), "green": 100 - 25 * (changes % 5)})
            changes += 1
        release.deploy("green", "tiny:2", verb="update", instance_count=3)
        assert len(release.ready("amphitrite.io/deployment=green")) == 3
        told = json.dumps(release.json("online-deployment", "show", "-n", "green", "-e", "cats"))
        assert "model found in the node's cache by 2 instances" in told, told
        release.deploy("green", "tiny:2", verb="update", instance_count=1)
        release.deploy("green", "tiny:3", verb="update")
        release.traffic(green=100)
        release.run("online-deployment", "delete", "-n", "blue", "-e", "cats", "-y")
        wait_until(lambda: not release.pods("amphitrite.io/deployment=blue"), "blue is gone")
        assert len(release.ready("amphitrite.io/deployment=green")) == 1
    print(f"{changes} traffic changes, 1 -> 3 -> 1, a replacement, a deletion: {result}")
    assert result["failed"] == 0, result
    assert result["requests"] >= REQUESTS
    assert set(result["deployments"]) == {"blue", "green"}
    release.run("online-endpoint", "delete", "-n", "cats", "-y")
    wait_until(lambda: not release.pods("amphitrite.io/endpoint=cats"), "its pods are gone")


NONE_WHEN_IDLE = {"minInstances": 0, "idleTimeout": "PT1S"}


def test_pods_follow_the_load_and_none_is_made_anew(release: Release) -> None:
    """Up with the requests that are in work and wait, and down again: none fails, and a pod stays
    the same."""
    blue = "amphitrite.io/deployment=blue"
    requests = {"request_timeout_ms": 60_000, "max_queue_wait_ms": 60_000, "max_concurrent_requests_per_instance": 1}
    scale = {"type": "target_utilization", "max_instances": 2}
    release.endpoint()
    release.deploy("blue", "tiny:1", "--all-traffic", request_settings=requests, scale_settings=scale)
    (first,) = release.ready(blue)
    with release.load(INFER, REQUEST, connections=8, think_ms=0) as result:
        wait_until(lambda: len(release.ready(blue)) == 2, "two pods are ready")
        assert first in release.ready(blue)
        two = set(release.ready(blue))
        settings = {"scaleType": "TargetUtilization", "maxInstances": 1}
        release.put("onlineEndpoints/cats/deployments/blue", scaleSettings=settings)
        wait_until(lambda: len(release.pods(blue)) == 1, "one pod is left")
        assert set(release.ready(blue)) < two
    assert result["failed"] == 0, result
    history = release.json("online-deployment", "scale-history", "-n", "blue", "-e", "cats")
    assert [(event["from"], event["to"]) for event in history] == [(2, 1), (1, 2)]
    # Then nobody asks for a while. The request that wakes it waits in one of the two proxies.
    release.put("onlineEndpoints/cats/deployments/blue", scaleSettings={**settings, **NONE_WHEN_IDLE})
    wait_until(lambda: not release.pods(blue), "it sleeps")
    assert release.request(INFER, key=release.keys()[0], body=REQUEST).status == 200
    assert len(release.ready(blue)) == 1
    release.run("online-endpoint", "delete", "-n", "cats", "-y")
    wait_until(lambda: not release.pods("amphitrite.io/endpoint=cats"), "its pods are gone")


def test_the_charts_own_test(release: Release) -> None:
    """Registers, deploys, scores and deletes a tiny model from within the cluster."""
    said = release.cluster.helm("test", NAME, "-n", release.namespace, "--timeout", "180s", timeout_s=200)
    assert "Phase:          Succeeded" in said, said


FAILURES = [
    ("no-image", 1, "refuse", "ImagePullLoopBackOff", "docker.io/amphitrite/absent:1"),
    ("no-node", 1, "wait", "PodUnschedulable", "didn't match Pod's node affinity/selector"),
    ("Standard_DS3_v2", 4, "refuse", "KubernetesCrashLoopBackOff", "failed to load 'tiny' version 1"),
]


@pytest.mark.parametrize(("kind", "version", "policy", "code", "words"), FAILURES, ids=[row[3] for row in FAILURES])
def test_what_keeps_a_pod_from_starting(
    release: Release, kind: str, version: int, policy: str, code: str, words: str
) -> None:
    """The operation fails, with Azure's code and the pod's own reason, and so does ``show``; what
    serves goes on."""
    name = code[:8].lower()
    release.endpoint(name)
    settings = {"instance_type": kind, "properties": {"amphitrite.capacity_policy": policy}}
    began = time.monotonic()
    with pytest.raises(AssertionError) as refused:
        release.deploy("blue", f"tiny:{version}", endpoint=name, **settings)
    print(f"{code}: told after {time.monotonic() - began:.1f} s: {str(refused.value).partition('error: ')[2]}")
    # The operation ends at the first word; what the log of the crashed container adds may come a
    # moment later.
    shown = wait_until(lambda: _shown(release, name, words), f"show says: {words}", 30)
    assert shown["provisioning_state"] == "Failed"
    events = release.cluster.kubectl("get", "events", "-n", release.namespace, "-o", "json")
    assert code in {event["reason"] for event in json.loads(events)["items"]}
    release.run("online-endpoint", "delete", "-n", name, "-y")
    wait_until(lambda: not release.pods(f"amphitrite.io/endpoint={name}"), "its pods are gone")


def _shown(release: Release, endpoint: str, words: str) -> dict[str, Any] | None:
    """The deployment as ``show`` prints it, once it says ``words``."""
    shown: dict[str, Any] = release.json("online-deployment", "show", "-n", "blue", "-e", endpoint)
    return shown if words in json.dumps(shown) else None
