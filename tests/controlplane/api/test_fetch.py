"""What pods are told about models, and who is."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from amphitrite.controlplane.auth.fetch_grants import GRANT_PERIOD_S
from amphitrite.controlplane.core.desired.resources import WorkloadSpec
from amphitrite.controlplane.core.observed.observations import Instance
from amphitrite.controlplane.process.app import create_app
from amphitrite.controlplane.store.assets.model_store import ModelStore
from amphitrite.controlplane.store.content.content_store import open_content

from ... import s3

ENSEMBLE = b'platform: "ensemble"\nensemble_scheduling { step [ { model_name: "model_1" } ] }\n'


@dataclass
class Pod:
    """Asks with a grant and without any token of ours."""

    world: Any
    digest: str
    name: str = ""

    def __post_init__(self) -> None:
        self.name = self.workload().name

    def model(self, digest: str | None = None, grant: str | None = None) -> httpx.Response:
        chosen = self.grant() if grant is None else grant
        headers = {"Authorization": f"Bearer {chosen}"}
        return self.get(f"/fetch/v1/models/{digest or self.digest}", **headers)

    def workload(self) -> WorkloadSpec:
        (deployment,) = self.world.store.load_world().deployments
        workload: WorkloadSpec = deployment.workload
        return workload

    def grant(self) -> str:
        """As the control plane gives it to the pods of this workload."""
        return str(self.world.services.delivery.grant(self.name, self.digest))

    def earlier_grant(self) -> str:
        """As releases until 0.2 gave it to everybody who served this model."""
        key = self.world.services.credentials.fetch_key.reveal().encode()
        signature = hmac.new(key, f"grant\n{self.digest}".encode(), hashlib.sha256).digest()
        return f"v1.{self.digest}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"

    def get(self, url: str, **headers: str) -> httpx.Response:
        return self.world.client.get(url, headers={"Authorization": "", **headers})

    def url(self) -> str:
        return str(self.model().json()["files"][0]["url"])


@pytest.fixture(params=["directory", "s3"])
def pod(request: pytest.FixtureRequest, world: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pod]:
    """Of a deployment whose model lies in a directory, or in an object store."""
    if request.param == "s3":
        content = open_content(s3.bucket(monkeypatch).url, tmp_path / "scratch", lambda: world.now[0])
        models = ModelStore(world.store.database, content, tmp_path / "scratch")
        world.services = replace(world.services, models=models, blobs=models.blobs)
        world.client._transport._app = httpx.ASGITransport(create_app(world.services))
    address = world.upload(files=("model_1/1/model.onnx",))
    url = "/storage/local/azureml-blobstore/LocalUpload/m/models/all/config.pbtxt"
    assert world.client.put(url, content=ENSEMBLE, headers={"x-ms-blob-type": "BlockBlob"}).status_code == 201
    document = {"name": "m", "version": "1", "type": "triton_model", "path": address}
    version, _ = world.services.models.put_version("m", "1", document, now=1.0)
    assert world.endpoint().status_code == world.deployment().status_code == 201
    yield Pod(world, version.digest)


def test_a_grant_opens_the_list_of_files(pod: Pod) -> None:
    answer = pod.model()
    assert (answer.status_code, answer.headers["Cache-Control"]) == (200, "no-store")
    body = answer.json()
    files = body.pop("files")
    assert body == {
        "digest": pod.digest,
        "bytes": len(ENSEMBLE) + len("model_1/1/model.onnx"),
        "empty_directories": ["all/1"],
        "in_use": [pod.digest],
    }
    assert [(file["path"], file["size"]) for file in files] == [
        ("all/config.pbtxt", len(ENSEMBLE)),
        ("model_1/1/model.onnx", 20),
    ]
    get = pod.get if files[0]["url"].startswith("/") else httpx.get
    assert [get(file["url"]).content for file in files] == [ENSEMBLE, b"model_1/1/model.onnx"]


def test_other_credentials_open_nothing(pod: Pod) -> None:
    delivery, credentials = pod.world.services.delivery, pod.world.services.credentials
    other = "0" * 64
    assert pod.model(digest=other).status_code == 401
    assert pod.model(grant=delivery.grant(pod.name, other)).status_code == 401
    for grant in ("", "v1", "é", credentials.token.reveal(), credentials.agent_token.reveal()):
        assert (
            pod.get(f"/fetch/v1/models/{pod.digest}", Authorization=f"Bearer {grant}".encode("latin-1")).status_code
            == 401
        )  # type: ignore[arg-type]
    assert pod.get("/subscriptions", Authorization=f"Bearer {pod.grant()}").status_code == 401
    assert pod.model(digest=other, grant=delivery.grant(pod.name, other)).status_code == 404


@pytest.mark.parametrize("pod", ["directory"], indirect=True)
def test_a_grant_ends_with_its_time(pod: Pod) -> None:
    grant = pod.grant()
    pod.world.now[0] += 2 * GRANT_PERIOD_S
    answer = pod.model(grant=grant)
    assert (answer.status_code, answer.json()["error"]["message"]) == (401, "the grant for this model has ended")
    assert pod.model().status_code == 200, "months later its Secret has another one"


@pytest.mark.parametrize("pod", ["directory"], indirect=True)
def test_a_grant_ends_with_its_workload_though_the_model_is_in_use(pod: Pod) -> None:
    grant = pod.grant()
    assert pod.world.deployment("green").status_code == 201
    workspace = pod.world.services.workspace
    assert pod.world.client.delete(f"{workspace}/onlineEndpoints/ep1/deployments/blue").status_code == 202
    pod.world.settle()
    answer = pod.model(grant=grant)
    assert (answer.status_code, answer.json()["error"]["message"]) == (403, "its workload is gone")
    assert pod.model(grant=pod.world.services.delivery.grant(pod.workload().name, pod.digest)).status_code == 200


@pytest.mark.parametrize("pod", ["directory"], indirect=True)
def test_a_grant_of_an_earlier_release_opens_for_its_instances_alone(pod: Pod, monkeypatch: pytest.MonkeyPatch) -> None:
    earlier = pod.earlier_grant()
    assert pod.model(grant=earlier).status_code == 403
    instance = Instance("pod-1", pod.workload(), 0, 1, "ready", None, 1.0)
    for ends, status in ((True, 403), (False, 200)):
        observed = (replace(instance, grant_ends=ends),)
        monkeypatch.setattr(type(pod.world.runtime), "observe", lambda _, observed=observed: observed)
        assert pod.model(grant=earlier).status_code == status


def test_a_model_is_closed_when_nothing_uses_it_any_more(pod: Pod) -> None:
    assert pod.model().status_code == 200
    workspace = pod.world.services.workspace
    assert pod.world.client.delete(f"{workspace}/onlineEndpoints/ep1").status_code == 202
    assert pod.model().status_code == 200  # Its instances are still to be stopped.
    pod.world.settle()
    answer = pod.model()
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "AuthorizationFailed")


@pytest.mark.parametrize("pod", ["directory"], indirect=True)
@pytest.mark.parametrize(
    ("range_", "status", "part", "says"),
    [
        (None, 200, slice(None), None),
        ("bytes=0-", 206, slice(None), "bytes 0-79/80"),
        ("bytes=5-9", 206, slice(5, 10), "bytes 5-9/80"),
        ("bytes=78-999", 206, slice(78, None), "bytes 78-79/80"),
        ("bytes=80-", 416, None, None),
        ("bytes=9-5", 416, None, None),
        ("bytes=-5", 416, None, None),
    ],
)
def test_ranges_of_content(pod: Pod, range_: str | None, status: int, part: slice | None, says: str | None) -> None:
    answer = pod.get(pod.url(), **({} if range_ is None else {"Range": range_}))
    assert answer.status_code == status
    if part is not None:
        assert answer.content == ENSEMBLE[part]
        assert answer.headers["Content-Length"] == str(len(ENSEMBLE[part]))
        assert answer.headers.get("Content-Range") == says


@pytest.mark.parametrize("pod", ["directory"], indirect=True)
def test_an_address_is_good_for_one_content_and_ten_minutes(pod: Pod) -> None:
    url = pod.url()
    digest = url.split("/")[-1].split("?")[0]
    assert pod.get(url.replace(digest, "0" * 64)).status_code == 401
    assert pod.get(url.replace("expires=1", "expires=2")).status_code == 401
    assert pod.get(url.split("?")[0]).status_code == 401
    pod.world.now[0] += 599
    assert pod.get(url).status_code == 200
    pod.world.now[0] += 1
    answer = pod.get(url)
    assert (answer.status_code, answer.json()["error"]["message"]) == (403, "this URL has expired")
    assert pod.get(pod.url()).status_code == 200
    pod.world.services.models.blobs.content.discard_older(digest, 9e9)
    assert pod.get(pod.world.services.delivery.signed_path(digest)).status_code == 404
