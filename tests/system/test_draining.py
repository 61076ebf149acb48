"""A deployment that is replaced or deleted finishes the answers that it has begun, also those that
come in parts."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from ..waiting import wait_until
from .product import Product
from .test_model_types import event

pytestmark = pytest.mark.serving

PATH = "/endpoints/cats/v2/models/countdown"
LONG = {"request_settings": {"request_timeout_ms": 20000}}


@pytest.fixture(scope="module")
def countdown(shared: Product, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """Deployment ``stream`` of a model that sends the rest of an answer only when told, without
    traffic."""
    root = tmp_path_factory.mktemp("countdown")
    shutil.copytree(Path(__file__).parent / "model_types" / "countdown", root / "countdown")
    for version in ("1", "2"):
        (root / "note").write_text(version)  # another content, hence another version
        shared.run("model", "create", "-n", "countdown", "-v", version, "-t", "triton_model", "-p", str(root))
    shared.deploy("stream", "countdown:1", **LONG)
    yield shared
    shared.run("online-deployment", "delete", "-n", "stream", "-e", "cats", "-y", check=False)


@pytest.mark.parametrize("change", ["replaced", "deleted"])
def test_a_stream_ends_as_if_nothing_had_changed(countdown: Product, change: str) -> None:
    headers = {"Authorization": f"Bearer {countdown.keys()[0]}", "azureml-model-deployment": "stream"}
    (old,) = sockets(countdown)
    connection = countdown.connection()
    connection.request("POST", f"{PATH}/generate_stream", json.dumps({"from": 2}).encode(), headers)
    answer = connection.getresponse()
    assert event(answer)["left"] == 2
    if change == "replaced":
        countdown.deploy("stream", "countdown:2", verb="update", **LONG)  # ends when the new one serves
    else:
        countdown.run("online-deployment", "delete", "-n", "stream", "-e", "cats", "-y", "--no-wait")
        wait_until(lambda: countdown.request(PATH, method="GET", headers=headers).status == 404, "no route leads to it")
    assert old in sockets(countdown)  # no request reaches it any more, and it lives as long as what it has begun
    go_on = {"from": 0}
    with httpx.Client(transport=httpx.HTTPTransport(uds=f"{old}/http")) as direct:
        assert direct.post("http://triton/v2/models/countdown/generate", json=go_on).status_code == 200
    assert [event(answer)["left"], event(answer)["left"]] == [1, 0]
    assert answer.read() == b""
    connection.close()
    wait_until(lambda: old not in sockets(countdown), "the old instance is gone")


def sockets(product: Product) -> set[str]:
    """The directories in which the instances of ``stream`` listen."""
    files = product.home.glob("instances/*cats-stream*/instance.json")
    return {json.loads(file.read_text())["sockets"] for file in files}
