"""How one cluster is used: which images, where models come from, who may call an instance.

Decides names and defaults of these settings. Must not know what is made of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from amphitrite.controlplane.core.desired.compute_clusters import PodShape
from amphitrite.controlplane.runtimes.kubernetes.workloads.model_facts import ModelFacts
from amphitrite.controlplane.settings.version import VERSION
from amphitrite.schemas.errors import Error

#: NVIDIA's release whose Triton is used where nothing else is said.
TRITON_TAG = "26.04-py3"
TRITON_REPOSITORY = "nvcr.io/nvidia/tritonserver"
TRITON_IMAGE = f"{TRITON_REPOSITORY}:{TRITON_TAG}"
FETCHER_IMAGE = f"docker.io/amphitrite/fetcher:{VERSION}"

CacheKind = Literal["emptyDir", "pvc", "hostPath", "image"]


@dataclass(frozen=True, slots=True)
class ModelCache:
    """Where models lie on a node. ``source``: a claim's name, a directory, or a repository of OCI images; empty for
    ``emptyDir``, which every pod fills for itself. ``limit``: bytes that a shared one may hold, None for no bound;
    models that nothing uses make room."""

    kind: CacheKind = "emptyDir"
    source: str = ""
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class KubernetesSettings:
    """``shape``: what a pod of an instance type asks for; raises Error("BadArgument") for an unknown one. ``facts``: of
    a model version's files, by digest, None when unknown. ``grant``: the Authorization header's value that opens one
    model version, by digest. ``fetch_url``: the control plane as pods reach it; ``fetch_ca``: its authority in PEM,
    None for the public ones.

    ``proxy_selector``: labels of the pods that may call instances, None for anyone. ``egress_ports``: TCP ports that
    pods may call besides DNS (a NetworkPolicy knows no host names), None for any. ``release``: one name for all control
    planes that share a database; two with different ones may share a namespace. ``max_input_bytes``: of one request,
    for a Triton that can be told.
    """

    namespace: str
    shape: Callable[[str], PodShape]
    grant: Callable[[str], str]
    facts: Callable[[str], ModelFacts | None]
    fetch_url: str
    fetch_ca: str | None = None
    triton_image: str = TRITON_IMAGE
    fetcher_image: str = FETCHER_IMAGE
    image_pull_policy: str = "IfNotPresent"
    image_pull_secrets: tuple[str, ...] = ()
    cache: ModelCache = ModelCache()
    proxy_selector: tuple[tuple[str, str], ...] | None = None
    egress_ports: tuple[int, ...] | None = None
    network_policy: bool = True
    release: str = "amphitrite"
    max_input_bytes: int = 100 * 1024 * 1024

    def image_for(self, shape: PodShape) -> str:
        """Triton's image for an instance type that names none: whoever chose another than ours knows the GPUs."""
        if shape.triton_tag is None or self.triton_image != TRITON_IMAGE:
            return self.triton_image
        return f"{TRITON_REPOSITORY}:{shape.triton_tag}"


def model_cache(text: str) -> ModelCache:
    """``emptyDir``, ``pvc:NAME``, ``hostPath:/DIRECTORY`` or ``image:REPOSITORY``. Raises Error("BadArgument")."""
    kind, colon, source = text.partition(":")
    if text == "emptyDir":
        return ModelCache()
    if colon and source and (kind == "pvc" or kind == "image" or (kind == "hostPath" and source.startswith("/"))):
        return ModelCache(kind, source)  # type: ignore[arg-type]
    raise Error(
        "BadArgument",
        f"model cache is {text!r}; allowed: emptyDir, pvc:NAME, hostPath:/DIRECTORY, image:REPOSITORY",
        target="ML_MODEL_CACHE",
    )
