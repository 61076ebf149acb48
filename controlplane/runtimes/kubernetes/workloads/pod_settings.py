"""The settings for pods on one cluster: images, where models come from, who may call an instance.

Decides names and defaults of these settings. Must not know what they are used for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from amphitrite.controlplane.core.desired.compute_clusters import PodShape
from amphitrite.controlplane.core.desired.resources import WorkloadSpec
from amphitrite.controlplane.runtimes.kubernetes.workloads.model_facts import ModelFacts
from amphitrite.controlplane.settings.version import VERSION
from amphitrite.schemas.errors import Error

#: The NVIDIA release of the default Triton image.
TRITON_TAG = "26.09-py3"
TRITON_REPOSITORY = "nvcr.io/nvidia/tritonserver"
TRITON_IMAGE = f"{TRITON_REPOSITORY}:{TRITON_TAG}"
FETCHER_IMAGE = f"docker.io/amphitrite/fetcher:{VERSION}"

SCRATCH_BYTES = 4 * 1024**3

CacheKind = Literal["emptyDir", "pvc", "hostPath", "image"]


@dataclass(frozen=True, slots=True)
class ModelCache:
    """Where models are stored on a node.

    ``source``: the name of a claim, a directory, or a repository of OCI images; empty for
    ``emptyDir``, which is filled for each pod. ``limit``: the maximum bytes of a shared cache, None
    for no limit; unused models are removed first.
    """

    kind: CacheKind = "emptyDir"
    source: str = ""
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class KubernetesSettings:
    """Settings for all pods on one cluster.

    * ``shape``: returns the pod shape of an instance type; raises Error("BadArgument") for an
      unknown one.
    * ``facts``: returns the facts of a model version by digest, None if unknown.
    * ``grant``: returns the Authorization header with which a workload's pods fetch their model.
      It changes from time to time.
    * ``fetch_url``: the URL of the control plane for pods. ``fetch_ca``: its certificate authority
      in PEM, None for public ones.
    * ``proxy_selector``: labels of the pods that may call instances, None for all pods.
      ``proxy_namespace``: where they are, None for any namespace. ``metrics_from``:
      NetworkPolicyPeers that may read metrics, None for all pods.
    * ``egress_ports``: TCP ports that pods may call besides DNS (a NetworkPolicy has no host
      names), None for any.
    * ``release``: one name for all control planes that share a database. Different releases may
      share a namespace.
    * ``max_input_bytes``: the maximum request size, for a Triton with that option.
    * ``scratch_bytes``: what a pod may write to /tmp and into its logs, unless its instance type
      says otherwise. ``storage_requests``: whether pods request it, which no node can give whose
      kubelet does not count local storage.
    """

    namespace: str
    shape: Callable[[str], PodShape]
    grant: Callable[[WorkloadSpec], str]
    facts: Callable[[str], ModelFacts | None]
    fetch_url: str
    fetch_ca: str | None = None
    triton_image: str = TRITON_IMAGE
    fetcher_image: str = FETCHER_IMAGE
    image_pull_policy: str = "IfNotPresent"
    image_pull_secrets: tuple[str, ...] = ()
    cache: ModelCache = ModelCache()
    proxy_selector: tuple[tuple[str, str], ...] | None = None
    proxy_namespace: str | None = None
    metrics_from: tuple[Mapping[str, Any], ...] | None = None
    egress_ports: tuple[int, ...] | None = None
    network_policy: bool = True
    release: str = "amphitrite"
    max_input_bytes: int = 100 * 1024 * 1024
    scratch_bytes: int = SCRATCH_BYTES
    storage_requests: bool = True

    def image_for(self, shape: PodShape) -> str:
        """The Triton image for an instance type that names none. An image other than our default,
        which may have a digest behind its tag, is used for all types."""
        if shape.triton_tag is None or self.triton_image.partition("@")[0] != TRITON_IMAGE:
            return self.triton_image
        return f"{TRITON_REPOSITORY}:{shape.triton_tag}"


def model_cache(text: str) -> ModelCache:
    """``emptyDir``, ``pvc:NAME``, ``hostPath:/DIRECTORY`` or ``image:REPOSITORY``. Raises
    Error("BadArgument")."""
    kind, colon, source = text.partition(":")
    if text == "emptyDir":
        return ModelCache()
    if colon and source and (kind == "pvc" or kind == "image" or (kind == "hostPath" and source.startswith("/"))):
        return ModelCache(kind, source)  # type: ignore[arg-type]
    raise Error(
        "BadArgument",
        f"the model cache is {text!r}; allowed: emptyDir, pvc:NAME, hostPath:/DIRECTORY, image:REPOSITORY",
        target="ML_MODEL_CACHE",
    )
