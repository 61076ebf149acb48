"""GPU accounting on a node with four of them: what does not fit is refused, waits, or makes room
first."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from ..system.models import REQUEST, adding
from ..waiting import wait_until
from .images import Images
from .node import Cluster
from .release import Release, installed
from .test_product import INFER

pytestmark = [pytest.mark.cluster, pytest.mark.early]
GPU_TYPE = "Standard_NC6s_v3"


@pytest.fixture(scope="module")
def release(cluster: Cluster, images: Images, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Release]:
    with installed(cluster, images, tmp_path_factory.mktemp("gpus")) as release:
        for version in (1, 2):
            path = str(adding(release.files / str(version), version))
            release.run("model", "create", "-n", "tiny", "-v", str(version), "-t", "triton_model", "-p", path)
        release.endpoint()
        yield release
        release.run("online-endpoint", "delete", "-n", "cats", "-y")


def gpus(release: Release) -> int:
    """What the node has for pods."""
    nodes = json.loads(release.cluster.kubectl("get", "nodes", "-o", "json"))["items"]
    return sum(int(node["status"]["allocatable"].get("nvidia.com/gpu", 0)) for node in nodes)


def deploy(
    release: Release, *more: str, policy: str = "refuse", version: int = 1, verb: str = "create", **settings: object
) -> None:
    properties = {"amphitrite.capacity_policy": policy}
    release.deploy(
        "blue", f"tiny:{version}", *more, verb=verb, instance_type=GPU_TYPE, properties=properties, **settings
    )


def test_all_gpus_and_one_more(release: Release) -> None:
    total = gpus(release)
    assert total >= 2, "this needs a node with GPUs"
    deploy(release, "--all-traffic", instance_count=total)
    document = release.file(
        "green.yml",
        f"name: green\nendpoint_name: cats\nmodel: azureml:tiny:1\ninstance_type: {GPU_TYPE}\ninstance_count: 1\n",
    )
    refused = release.run("online-deployment", "create", "-f", document, check=False)
    assert refused.returncode == 1
    assert f"1 instance of {GPU_TYPE} needs 1 nvidia.com/gpu; 0 of {total} is free" in refused.stderr
    assert "green" not in {d["name"] for d in release.json("online-deployment", "list", "-e", "cats")}, (
        "nothing changed"
    )


def test_a_replacement_that_does_not_fit_is_refused(release: Release) -> None:
    before = release.ready("amphitrite.io/deployment=blue")
    with pytest.raises(AssertionError, match=r"0 of \d is free"):
        deploy(release, verb="update", version=2, instance_count=gpus(release))
    assert release.ready("amphitrite.io/deployment=blue") == before


def test_a_replacement_that_waits(release: Release) -> None:
    """The old instances serve until there is room; here it comes when fewer of the new ones are
    asked for."""
    total = gpus(release)
    with release.load(INFER, REQUEST, connections=2) as result:
        deploy(release, "--no-wait", policy="wait", verb="update", version=2, instance_count=total)
        wait_until(lambda: "wait" in message(release), "it says that it waits", 30)
        deploy(release, policy="wait", verb="update", version=1, instance_count=total)
    assert result["failed"] == 0, result


def test_a_replacement_that_drains_first(release: Release) -> None:
    total = gpus(release)
    with release.load(INFER, REQUEST, connections=2) as result:
        deploy(release, policy="drain-first", verb="update", version=2, instance_count=total)
    print(result)
    assert result["failed"] == 0, result
    assert len(release.ready("amphitrite.io/deployment=blue")) == total


def message(release: Release) -> str:
    """What the newest operation of the deployment says."""
    return json.dumps(release.json("online-deployment", "show", "-n", "blue", "-e", "cats"))
