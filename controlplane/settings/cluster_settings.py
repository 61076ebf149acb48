"""The settings for a Kubernetes cluster: the built-in compute's, and the one that the control plane
runs in.

Decides names, defaults and ranges of these settings. Must not know the Kubernetes client or what is
done with them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from amphitrite.controlplane.settings import setting_values as values
from amphitrite.schemas.errors import Error

#: Set by the kubelet in every container.
IN_CLUSTER = "KUBERNETES_SERVICE_HOST"
#: Where the kubelet mounts the namespace of a pod's service account.
NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
PULL_POLICIES = ("Always", "IfNotPresent", "Never")

_CACHE = re.compile(r"emptyDir|pvc:[a-z0-9][a-z0-9.-]*|hostPath:/.+|image:.+")
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """* ``kubeconfig``: None for the service account of this pod. ``namespace``: of the instances.
      ``own_namespace``: of the Lease and the Secret.
    * ``release``: a label of everything that is created there; the same for all control planes of a
      database.
    * ``lease_name``: the Lease by which replicas elect a leader, None for a single control plane.
      ``identity``: this replica's name in it.
    * ``table_secret``: the Secret where the leader stores the routing table.
    * ``model_cache``: ``emptyDir``, ``pvc:NAME``, ``hostPath:/DIRECTORY`` or ``image:REPOSITORY``.
      ``model_cache_bytes``: the size limit of a shared cache, None for no limit.
    * ``fetch_url``: the URL of this control plane for pods, None for the URL of clients.
    * ``instance_types``: a file with an InstanceTypes document. ``proxy_selector``: labels of the
      pods that may call instances. ``metrics_from``: NetworkPolicyPeers that may read their
      metrics, None for any pod.
    * ``scratch_bytes``: what an instance may write to its disk. ``storage_requests``: whether it
      requests that.
    """

    kubeconfig: Path | None = None
    namespace: str = "default"
    own_namespace: str = "default"
    release: str = "amphitrite"
    identity: str = "controlplane"
    lease_name: str | None = None
    table_secret: str | None = None
    triton_image: str | None = None
    fetcher_image: str | None = None
    image_pull_policy: str = "IfNotPresent"
    image_pull_secrets: tuple[str, ...] = ()
    model_cache: str = "emptyDir"
    model_cache_bytes: int | None = None
    fetch_url: str | None = None
    instance_types: Path | None = None
    proxy_selector: Mapping[str, str] = field(default_factory=dict)
    metrics_from: tuple[Mapping[str, Any], ...] | None = None
    scratch_bytes: int = 4 * 1024**3
    storage_requests: bool = True


def read(environ: Mapping[str, str], *, kubeconfig: Path | None, namespace: str | None, host: str) -> ClusterSettings:
    """The settings from arguments (None: not given) over ``environ``. ``host``: this machine's
    name.

    Variables: ``ML_KUBECONFIG``, ``KUBECONFIG`` (outside a cluster), ``ML_KUBERNETES_NAMESPACE``,
    ``ML_POD_NAME``, ``ML_POD_NAMESPACE``, ``ML_RELEASE``, ``ML_LEASE_NAME``, ``ML_TABLE_SECRET``,
    ``ML_TRITON_IMAGE``, ``ML_FETCHER_IMAGE``, ``ML_IMAGE_PULL_POLICY``, ``ML_IMAGE_PULL_SECRETS``,
    ``ML_MODEL_CACHE``, ``ML_MODEL_CACHE_BYTES``, ``ML_FETCH_URL``, ``ML_INSTANCE_TYPES``,
    ``ML_PROXY_SELECTOR``, ``ML_METRICS_FROM``, ``ML_INSTANCE_SCRATCH_BYTES``,
    ``ML_INSTANCE_STORAGE_REQUESTS``.

    Raises Error("BadArgument") that names the setting and what is allowed.
    """
    default = ClusterSettings()
    file = _kubeconfig(environ, kubeconfig)
    own = environ.get("ML_POD_NAMESPACE") or _namespace(inside=file is None) or default.namespace
    return ClusterSettings(
        kubeconfig=file,
        namespace=namespace or environ.get("ML_KUBERNETES_NAMESPACE") or own,
        own_namespace=own,
        release=_name("ML_RELEASE", environ) or default.release,
        identity=environ.get("ML_POD_NAME") or host,
        lease_name=_name("ML_LEASE_NAME", environ),
        table_secret=_name("ML_TABLE_SECRET", environ),
        triton_image=environ.get("ML_TRITON_IMAGE") or None,
        fetcher_image=environ.get("ML_FETCHER_IMAGE") or None,
        image_pull_policy=values.choice(
            "ML_IMAGE_PULL_POLICY", environ.get("ML_IMAGE_PULL_POLICY") or default.image_pull_policy, PULL_POLICIES
        ),
        image_pull_secrets=values.names(environ.get("ML_IMAGE_PULL_SECRETS")),
        model_cache=_cache(environ.get("ML_MODEL_CACHE") or default.model_cache),
        model_cache_bytes=_bytes("ML_MODEL_CACHE_BYTES", environ),
        fetch_url=values.https_url("ML_FETCH_URL", environ.get("ML_FETCH_URL")),
        instance_types=Path(environ["ML_INSTANCE_TYPES"]) if environ.get("ML_INSTANCE_TYPES") else None,
        proxy_selector=values.labels("ML_PROXY_SELECTOR", environ.get("ML_PROXY_SELECTOR")),
        metrics_from=_peers("ML_METRICS_FROM", environ),
        scratch_bytes=_bytes("ML_INSTANCE_SCRATCH_BYTES", environ) or default.scratch_bytes,
        storage_requests=values.choice(
            "ML_INSTANCE_STORAGE_REQUESTS", environ.get("ML_INSTANCE_STORAGE_REQUESTS") or "true", ("true", "false")
        )
        == "true",
    )


def require_cluster(cluster: ClusterSettings, environ: Mapping[str, str]) -> None:
    """Raises Error("BadArgument") if the settings lead to no cluster."""
    if cluster.kubeconfig is None and IN_CLUSTER not in environ:
        raise Error(
            "BadArgument",
            "no cluster is configured: this process does not run in a pod, and no kubeconfig is set",
            target="kubeconfig",
            hint="use --kubeconfig FILE, or set ML_KUBECONFIG or KUBECONFIG",
        )
    if cluster.kubeconfig is not None and not cluster.kubeconfig.is_file():
        message = f"the kubeconfig {cluster.kubeconfig} does not exist"
        raise Error("BadArgument", message, target="kubeconfig", hint="use --kubeconfig with an existing file")


def _kubeconfig(environ: Mapping[str, str], argument: Path | None) -> Path | None:
    """An explicit file; in a pod none; otherwise the first existing file of ``KUBECONFIG``, as
    kubectl does."""
    explicit = argument or (Path(environ["ML_KUBECONFIG"]) if environ.get("ML_KUBECONFIG") else None)
    if explicit is not None:
        return explicit.expanduser().absolute()
    if IN_CLUSTER in environ:
        return None
    candidates = [Path(part) for part in environ.get("KUBECONFIG", "").split(":") if part]
    return next((path.absolute() for path in candidates if path.is_file()), candidates[0] if candidates else None)


def _namespace(*, inside: bool) -> str | None:
    """The namespace of this pod."""
    if inside and NAMESPACE_FILE.is_file():
        return NAMESPACE_FILE.read_text(encoding="utf-8").strip()
    return None


def _name(variable: str, environ: Mapping[str, str]) -> str | None:
    name = environ.get(variable) or None
    if name is not None and not _NAME.fullmatch(name):
        raise Error(
            "BadArgument", f"{variable} is {name!r}, which is not a valid name of a Kubernetes object", target=variable
        )
    return name


def _cache(text: str) -> str:
    if not _CACHE.fullmatch(text):
        message = f"ML_MODEL_CACHE is {text!r}; allowed: emptyDir, pvc:NAME, hostPath:/DIRECTORY, image:REPOSITORY"
        raise Error("BadArgument", message, target="ML_MODEL_CACHE")
    return text


def _peers(name: str, environ: Mapping[str, str]) -> tuple[Mapping[str, Any], ...] | None:
    if not environ.get(name):
        return None
    try:
        peers = json.loads(environ[name])
    except ValueError:
        peers = None
    if not isinstance(peers, list) or not all(isinstance(peer, dict) for peer in peers):
        message = f"{name} is not a list of NetworkPolicyPeers in JSON"
        raise Error("BadArgument", message, target=name, hint='for example [{"namespaceSelector": {}}]')
    return tuple(peers)


def _bytes(name: str, environ: Mapping[str, str]) -> int | None:
    count = values.integer(name, environ.get(name), 0)
    if count < 0:
        raise Error("BadArgument", f"{name} is {count}; allowed: 1 or more", target=name, hint="unset it for no limit")
    return count or None
