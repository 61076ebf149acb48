"""The fetcher as a process, against the real control plane over TLS and a real object store."""

from __future__ import annotations

import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest

from amphitrite.controlplane.auth.fetch_grants import URL_LIFETIME_S
from amphitrite.controlplane.store.content.directory_content import ContentDirectory
from amphitrite.dataplane import fetch as package

from ... import s3
from ...waiting import DEADLINE_S, wait_until
from .fetching import FILES, SIZE, Site, site

pytestmark = pytest.mark.slow

PLACES = ["directory", "s3"]


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    kind = getattr(request, "param", "directory")
    return s3.bucket(monkeypatch).url if kind == "s3" else (tmp_path / "home" / "models").as_uri()


@pytest.fixture
def cluster(tmp_path: Path, place: str) -> Iterator[Site]:
    with site(tmp_path / "home", place) as one:
        yield one


def held(site: Site) -> None:
    """Exactly the model is in the cache, and nothing of its making."""
    assert site.model() == {**FILES, "all/1": None}
    assert sorted(path.name for path in site.cache.iterdir()) == [site.digest, f"{site.digest}.lock"]
    root = site.cache / site.digest
    modes = {(path.is_dir(), stat.S_IMODE(path.stat().st_mode)) for path in (root, *root.rglob("*"))}
    assert modes == {(True, 0o755), (False, 0o444)}


@pytest.mark.parametrize("place", PLACES, indirect=True)
def test_the_first_pod_downloads_and_the_second_does_not(cluster: Site) -> None:
    result = cluster.fetch()
    assert (result["cache"], result["bytes"]) == ("miss", SIZE)
    held(cluster)
    result = cluster.fetch(URL="https://127.0.0.1:9")  # Nobody is asked.
    assert (result["cache"], result["bytes"]) == ("hit", SIZE)
    assert result["seconds"] >= 0 and '"hit"' in (cluster.cache.parent / "termination-log").read_text()


def test_of_two_pods_at_once_one_downloads(cluster: Site) -> None:
    cluster.trouble.hold = threading.Event()
    both = [cluster.start(), cluster.start()]
    wait_until(cluster.part_bytes, "something has come")
    cluster.trouble.hold.set()
    assert sorted(cluster.ended(one)["cache"] for one in both) == ["hit", "miss"]
    assert len(cluster.trouble.ranges) == sum(len(data) > 0 for data in FILES.values())
    held(cluster)


@pytest.mark.parametrize("place", PLACES, indirect=True)
def test_damaged_content_is_refused(cluster: Site) -> None:
    content = cluster.world.services.models.blobs.content
    digest = next(f.digest for f in cluster.world.services.models.layout(cluster.digest).files if f.size > 10**6)
    damaged = b"ONNX" * 700_000
    if isinstance(content, ContentDirectory):
        content.path(digest).chmod(0o644)
        content.path(digest).write_bytes(damaged)
    else:
        key = f"of/us/sha256/{digest[:2]}/{digest}"
        boto3.client("s3").put_object(Bucket=content.place.split("/")[2], Key=key, Body=damaged)
    result = cluster.fetch()
    assert result["error"] == f"model_1/1/model.onnx is damaged on arrival: its SHA-256 is not {digest}"
    assert "upload the model again" in result["hint"]
    assert not (cluster.cache / cluster.digest).exists()


def test_a_broken_transfer_goes_on_where_it_broke(cluster: Site) -> None:
    cluster.trouble.cut = 2
    assert cluster.fetch()["cache"] == "miss"
    held(cluster)
    assert len([one for one in cluster.trouble.ranges if one.startswith("bytes=") and one != "bytes=0-"]) == 2


def test_expired_addresses_are_asked_for_again(tmp_path: Path, place: str) -> None:
    calls = iter(range(10**6))

    def clock() -> float:
        """Time jumps when the files have been listed, before the first of them is asked for."""
        return time.time() + (URL_LIFETIME_S + 1 if next(calls) >= len(FILES) else 0)

    with site(tmp_path / "home", place, clock) as one:
        assert one.fetch()["cache"] == "miss"
        held(one)
        assert len(one.trouble.ranges) > sum(len(data) > 0 for data in FILES.values())


def test_a_killed_fetcher_is_gone_on_with(cluster: Site) -> None:
    cluster.trouble.hold = threading.Event()
    first = cluster.start()
    wait_until(lambda: cluster.part_bytes() >= 2**20, "a part has come")
    first.kill()
    first.communicate()
    assert not (cluster.cache / cluster.digest).exists()
    cluster.trouble.hold.set()
    before = len(cluster.trouble.ranges)
    assert cluster.fetch()["cache"] == "miss"
    assert [one for one in cluster.trouble.ranges[before:] if one.startswith("bytes=")] != []
    held(cluster)


def test_sigterm_ends_it_at_once(cluster: Site) -> None:
    cluster.trouble.hold = threading.Event()
    fetcher = cluster.start()
    wait_until(cluster.part_bytes, "something has come")
    fetcher.terminate()
    fetcher.communicate(timeout=DEADLINE_S)
    assert fetcher.returncode == 128 + signal.SIGTERM


def test_a_grant_opens_no_other_model(cluster: Site) -> None:
    other = cluster.world.services.delivery.grant("w", "0" * 64)
    result = cluster.fetch(GRANT=other)
    assert result["error"] == "the control plane refuses the model: 401: the request needs a grant for this model"
    unknown = cluster.fetch(GRANT=other, DIGEST="0" * 64)["error"]
    assert unknown.endswith(f"404: no model version has the content {'0' * 64}")


def test_a_model_that_nothing_uses_is_refused(cluster: Site) -> None:
    cluster.world.client.delete(f"{cluster.world.services.workspace}/onlineEndpoints/ep1")
    cluster.world.settle()
    assert cluster.fetch()["error"].endswith("403: no deployment uses this model any more")


def test_content_that_is_gone_is_told(cluster: Site) -> None:
    for digest in cluster.world.services.models.blobs.content.digests():
        if digest != next(f.digest for f in cluster.world.services.models.layout(cluster.digest).files):
            cluster.world.services.models.blobs.content.discard_older(digest, 9e9)
    assert "404: this content no longer exists" in cluster.fetch()["error"]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"CA": None}, "the certificate of 127.0.0.1"),
        ({"CA": "/nowhere.pem"}, "the authorities in /nowhere.pem cannot be read"),
        ({"CACHE": "/dev/null/cache"}, "the model cache /dev/null/cache cannot be used"),
        ({"CACHE": "/proc/cache"}, "the model cache /proc/cache cannot be used"),
        (
            {"URL": "https://127.0.0.1:9", "STALL_TIMEOUT_S": "0.5"},
            "gave up after 0.5 s without a byte: the control plane",
        ),
        ({"URL": "ftp://127.0.0.1"}, "AMPHITRITE_FETCH_URL is 'ftp://127.0.0.1'"),
        ({"GRANT": None}, "AMPHITRITE_FETCH_GRANT is not set"),
        ({"DIGEST": "../" * 20}, "64 hexadecimal digits are needed"),
        ({"STALL_TIMEOUT_S": "0"}, "a number above 0 is needed"),
        ({"PROXY": "http://127.0.0.1:9", "STALL_TIMEOUT_S": "0.5"}, "gave up"),
    ],
)
def test_what_is_wrong_is_told(cluster: Site, changes: dict[str, str | None], says: str) -> None:
    assert says in cluster.fetch(**changes)["error"]


def test_it_needs_the_standard_library_alone(tmp_path: Path) -> None:
    """As in its image: this package, Python without site-packages, nothing else."""
    target = tmp_path / "amphitrite" / "dataplane" / "fetch"
    shutil.copytree(Path(package.__path__[0]), target, ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-S", "-m", "amphitrite.dataplane.fetch"]
    ran = subprocess.run(command, env={}, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (1, "")
    assert ran.stdout == '{"error": "AMPHITRITE_FETCH_URL is not set", "hint": ""}\n'
