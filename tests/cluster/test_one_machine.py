"""A server on one machine whose instances are pods: in an attached cluster, and in the one it was
started for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ..system.models import REQUEST, adding
from ..system.product import Product
from ..waiting import wait_until
from .images import Images
from .node import Cluster
from .release import SMALL

pytestmark = [pytest.mark.cluster, pytest.mark.early]
INFER = "/endpoints/cats/v2/models/tiny/infer"
TYPES = f"""\
instance_types:
  - name: small
    resources: {SMALL}
"""


class Laptop(Product):
    """Reached by pods at ``host``."""

    def __init__(self, root: Path, host: str, images: Images, *, counts_storage: bool, **environment: str) -> None:
        super().__init__(root)
        self.host = host
        self.api_url = f"https://{host}:{self.port}"
        self.scoring = (host, self.scoring_port)
        # A kubelet may not count local storage: then no node could give any.
        self.environment |= {"ML_INSTANCE_STORAGE_REQUESTS": str(counts_storage).lower()}
        self.environment |= {"ML_FETCHER_IMAGE": images.fetcher, "ML_IMAGE_PULL_POLICY": "Never", **environment}

    def start(self, *more: str) -> None:
        ports = ("--host", self.host, "--port", str(self.port), "--scoring-port", str(self.scoring_port))
        self.run("server", "start", "-d", *ports, *more)


@contextmanager
def laptop(cluster: Cluster, images: Images, root: Path, *more: str, **environment: str) -> Iterator[Laptop]:
    if cluster.host is None:
        pytest.skip("AMPHITRITE_TEST_HOST does not say under which address pods reach this machine")
    made = Laptop(root, cluster.host, images, counts_storage=cluster.counts_storage(), **environment)
    try:
        made.start(*more)
        path = str(adding(made.files / "one", 1))
        made.run("model", "create", "-n", "tiny", "-v", "1", "-t", "triton_model", "-p", path)
        yield made
    finally:
        made.destroy()


def scored(user: Laptop, endpoint: str = "cats") -> tuple[int, str | None]:
    path = INFER.replace("cats", endpoint)
    answer = user.request(path, key=user.keys(endpoint)[0], body=REQUEST)
    return answer.status, answer.deployment


def test_an_attached_cluster(cluster: Cluster, images: Images, tmp_path: Path) -> None:
    with cluster.namespace(prefix="lab") as name, laptop(cluster, images, tmp_path) as user:
        types = user.file("types.yml", TYPES)
        attach = ("compute", "attach", "--type", "kubernetes", "--name", "lab", "--kubeconfig", str(cluster.kubeconfig))
        missing = user.run(*attach, "--namespace", "nowhere", check=False)
        assert missing.returncode == 1
        assert "nowhere" in missing.stderr
        assert "lab" not in {c["name"] for c in user.json("compute", "list")}
        user.run(*attach, "--namespace", name)
        user.run("compute", "update", "-n", "lab", "--file", types)
        shown = user.run("compute", "show", "-n", "lab").stdout
        assert "client-key-data" not in shown, "a kubeconfig is never shown"

        user.run("online-endpoint", "create", "-f", user.file("e.yml", "name: cats\ncompute: azureml:lab\n"))
        settings: dict[str, Any] = {"type": "kubernetes", "instance_type": "small"}
        user.deploy("blue", "tiny:1", "--all-traffic", **settings)
        assert scored(user) == (200, "blue")
        for container, words in (
            ("inference-server", "Started HTTPService"),
            ("storage-initializer", "fetching 1 files"),
        ):
            arguments = ("-n", "blue", "-e", "cats", "--container", container)
            assert words in user.run("online-deployment", "get-logs", *arguments).stdout, container
        refused = user.run("compute", "detach", "-n", "lab", "-y", check=False)
        assert refused.returncode == 1, "it is in use"

        # What runs on this machine beside it is untouched by any of that.
        user.run("online-endpoint", "create", "-n", "dogs")
        user.deploy("blue", "tiny:1", "--all-traffic", endpoint="dogs")
        assert scored(user, "dogs") == (200, "blue")
        user.run("online-endpoint", "delete", "-n", "cats", "-y")
        wait_until(lambda: not cluster.leftovers(name), "nothing of it is left in the cluster")
        user.run("compute", "detach", "-n", "lab", "-y")


def test_the_cluster_it_was_started_for(cluster: Cluster, images: Images, tmp_path: Path) -> None:
    with cluster.namespace(prefix="started") as name:
        types = tmp_path / "types.yml"
        types.write_text(TYPES)
        where = ("--runtime", "kubernetes", "--kubeconfig", str(cluster.kubeconfig), "--namespace", name)
        with laptop(cluster, images, tmp_path, *where, ML_INSTANCE_TYPES=str(types)) as user:
            user.endpoint()
            user.deploy("blue", "tiny:1", "--all-traffic", instance_type="small")
            assert scored(user) == (200, "blue")
            key = user.keys()[0]
            user.kill_control_plane()
            assert user.request(INFER, key=key, body=REQUEST).status == 200
            user.start(*where)
            shown = user.json("online-deployment", "show", "-n", "blue", "-e", "cats")
            assert shown["provisioning_state"] == "Succeeded"
            user.run("online-endpoint", "delete", "-n", "cats", "-y")
            wait_until(lambda: not cluster.leftovers(name), "nothing of it is left in the cluster")
