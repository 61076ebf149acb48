"""The images start as the Pod Security level ``restricted`` wants, and carry what they need and no
more."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import tarfile
from pathlib import Path

import pytest

from deploy.lock import read, requirements

from ..helm.chart import EXAMPLES, documents, one
from ..waiting import wait_until
from .builder import builder
from .images import DEPLOY, Images, base
from .machine import ROOT, cache, run
from .node import Cluster
from .oci_registry import Registry
from .pods import create, ended, restricted_pod, told

pytestmark = pytest.mark.cluster

PRODUCT = ("controlplane", "dataplane", "fetcher")

#: What a container sees of itself, as JSON.
PROBE = """
import errno, importlib.metadata, importlib.util, json, os, pathlib, sys
def refusal(path):
    try:
        pathlib.Path(path).touch()
    except OSError as exc:
        return errno.errorcode[exc.errno]
root = pathlib.Path("/opt/amphitrite")
sources = list(root.rglob("lib/**/*.py"))
compiled = [p for p in sources if pathlib.Path(importlib.util.cache_from_source(str(p))).exists()]
print(json.dumps({
    "user": [os.getuid(), os.getgid()],
    "refusals": {p: refusal(f"{p}/x") for p in ("", str(root), "/tmp", "/var/lib/amphitrite", "/run/amphitrite")},
    "distributions": sorted(d.metadata["Name"].lower().replace("_", "-") for d in importlib.metadata.distributions()),
    "installers": [m for m in ("pip", "setuptools", "wheel") if importlib.util.find_spec(m)],
    "directories": sorted({p.parent.relative_to(root).as_posix() for p in sources}),
    "compiled": [len(compiled), len(sources)],
}))
"""


@pytest.fixture(scope="module")
def seen(cluster: Cluster, images: Images) -> dict[str, dict[str, object]]:
    """What each of the product's images sees of itself."""
    with cluster.namespace(empty=False) as namespace:
        pods = [restricted_pod(n, getattr(images, n), command=["python", "-c", PROBE]) for n in PRODUCT]
        create(cluster, namespace, *pods)
        return {name: json.loads(ended(cluster, namespace, name).log) for name in PRODUCT}


@pytest.mark.parametrize("name", PRODUCT)
def test_an_image_runs_as_nobody_in_particular_on_a_root_that_cannot_be_written(
    seen: dict[str, dict[str, object]], name: str
) -> None:
    assert seen[name]["user"] == [65532, 65532]
    assert seen[name]["refusals"] == {
        **{"": "EROFS", "/opt/amphitrite": "EROFS"},
        **dict.fromkeys(("/tmp", "/var/lib/amphitrite", "/run/amphitrite")),
    }


@pytest.mark.parametrize("name", ("controlplane", "dataplane"))
def test_an_image_carries_what_its_set_of_the_lock_says(seen: dict[str, dict[str, object]], name: str) -> None:
    locked = {package.name for package in read(requirements(name))}
    assert set(seen[name]["distributions"]) == {"amphitrite", *locked}  # type: ignore[call-overload]


def test_the_fetcher_is_one_package_and_the_standard_library(seen: dict[str, dict[str, object]]) -> None:
    assert seen["fetcher"]["distributions"] == []
    assert seen["fetcher"]["directories"] == ["lib/amphitrite/dataplane", "lib/amphitrite/dataplane/fetch"]


@pytest.mark.parametrize("name", PRODUCT)
def test_an_image_has_no_installer_and_need_not_compile(seen: dict[str, dict[str, object]], name: str) -> None:
    assert seen[name]["installers"] == []
    compiled, sources = seen[name]["compiled"]  # type: ignore[misc]
    assert compiled == sources > 0


def test_entry_points(cluster: Cluster, images: Images, namespace: str) -> None:
    create(
        cluster,
        namespace,
        restricted_pod("controlplane", images.controlplane, args=["--help"]),
        restricted_pod("version", images.controlplane, command=["ml", "--version"]),
        restricted_pod("dataplane", images.dataplane, args=["--help"]),
        restricted_pod("envoy", images.dataplane, command=["envoy", "--version"]),
        restricted_pod("fetcher", images.fetcher),
    )
    ends = {n: ended(cluster, namespace, n) for n in ("controlplane", "version", "dataplane", "envoy", "fetcher")}
    assert {name: end.exit_code for name, end in ends.items()} == {
        **{"controlplane": 0, "version": 0, "dataplane": 0, "envoy": 0},
        "fetcher": 1,
    }, ends
    assert "ml server start" in ends["controlplane"].log
    assert "python -m amphitrite.dataplane" in ends["dataplane"].log
    assert "error" in json.loads(ends["fetcher"].message)


def test_triton_serves_the_example(cluster: Cluster, images: Images, namespace: str) -> None:
    """The stand-in serves as the real image does, as its user 1000 on a root that cannot be
    written."""
    script = (
        "until [ -f /models/complete ]; do sleep 0.1; done; "
        "exec tritonserver --model-repository=/models/example --model-control-mode=none --allow-grpc=false"
    )
    pod = restricted_pod(
        *("triton", images.triton),
        command=["sh", "-c", script],
        user=1000,
        writable={"tmp": "/tmp", "models": "/models", "shm": "/dev/shm"},
    )
    create(cluster, namespace, pod)
    cluster.kubectl("wait", "-n", namespace, "--for=condition=Ready", "pod/triton", "--timeout=60s")
    unpack = "tar -x -C /models -f - && touch /models/complete"
    models = _tar(ROOT / "examples" / "single-model" / "models")
    cluster.kubectl("exec", "-i", "-n", namespace, "triton", "--", "sh", "-c", unpack, stdin=models)

    proxy = f"/api/v1/namespaces/{namespace}/pods/triton:8000/proxy/v2/models/model_1"
    wait_until(
        lambda: (
            "HTTP" not in cluster.kubectl("get", "--raw", f"{proxy}/ready", check=False)
            and cluster.kubectl("get", "--raw", proxy, check=False)
        ),
        "the example model is ready",
        detail=lambda: told(cluster, namespace, "triton"),
    )
    picture = {"name": "data_0", "shape": [1, 3, 224, 224], "datatype": "FP32", "data": [0.5] * (3 * 224 * 224)}
    answer = cluster.kubectl("create", "--raw", f"{proxy}/infer", "-f", "-", stdin=json.dumps({"inputs": [picture]}))
    (output,) = json.loads(answer)["outputs"]
    assert (output["name"], output["shape"], len(output["data"])) == ("fc6_1", [1, 1000], 1000)


def _tar(models: Path) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.add(models, "example")
    return packed.getvalue()


def test_what_was_pushed_is_pinned_by_one_file_of_values(images: Images, tmp_path: Path) -> None:
    """The image was built before, so that this only pushes it."""
    written, configuration = tmp_path / "digests.yaml", tmp_path / "registries.conf"
    tool, tag = builder(cache()), images.fetcher.rpartition(":")[2]
    with Registry() as registry:
        configuration.write_text(f'[[registry]]\nlocation = "{registry.address}"\ninsecure = true\n')
        environment = {**tool.environment(), "CONTAINERS_REGISTRIES_CONF": str(configuration)}
        where = ("--registry", f"{registry.address}/ml", "--tag", tag, "--base", base(tool))
        said = run(DEPLOY / "build.sh", *where, "--push", "--digests", written, "fetcher", env=environment)
        manifest = registry.manifests[f"ml/fetcher:{tag}"]
    digest = f"sha256:{hashlib.sha256(manifest).hexdigest()}"
    reference = f"{registry.address}/ml/fetcher:{tag}@{digest}"
    assert said.splitlines()[-1] == reference
    controlplane = one(documents("-f", EXAMPLES["production"], "-f", written), "Deployment", "amphitrite-controlplane")
    (container,) = controlplane["spec"]["template"]["spec"]["containers"]
    assert {"name": "ML_FETCHER_IMAGE", "value": reference} in container["env"]
    lines = written.read_text()
    for other in ("triton", "postgresql"):
        assert f"  {other}: {{digest: " in lines or f"# {other} is not pinned" in lines


def test_digests_are_not_written_of_what_no_registry_has(tmp_path: Path) -> None:
    done = subprocess.run(
        [str(DEPLOY / "build.sh"), "--digests", str(tmp_path / "d")], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (2, "error: --digests needs --push: a registry decides the digest\n")
