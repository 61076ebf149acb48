"""Custom containers: what an instance runs for a deployment's environment, or why it cannot.

Decides which environments this server can run, the port and routes of the server in the container,
where the model's files are, and which model repository Triton loads. Must not know pods, processes
or the store.

The paths follow Azure ML's documentation ("Use a custom container to deploy a model") and its
public example ``custom-container/triton``. The files are below ``model_mount_path``, or below
``/var/azureml-app/azureml-models/<name>/<version>``, in a directory of the name that was uploaded.
``AZUREML_MODEL_DIR`` names the directory above it. That example uploads ``model_1``, so its image
finds the files in ``/models/model_1``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from amphitrite.controlplane.core.desired import images
from amphitrite.schemas.errors import Violation

Document = Mapping[str, Any]
Path = tuple[str | int, ...]

#: Where Azure ML mounts a model if the deployment sets no ``model_mount_path``.
MODELS_ROOT = "/var/azureml-app/azureml-models"
#: The environment variable with the directory above the model's files.
MODEL_DIR = "AZUREML_MODEL_DIR"
#: The deployment property with the model that a POST to the scoring URI is for.
SCORING_MODEL = "amphitrite.scoring_model"

_ROUTE_NAMES = ("liveness_route", "readiness_route", "scoring_route")
#: Triton's port and paths. Triton has no route ``/``: there it stands for the only model.
_TRITON_PORT, _TRITON_GRPC_PORT, _TRITON_PATHS = 8000, 8001, ("/v2/health/live", "/v2/health/ready", "/")
#: The paths that Triton answers to GET. With any other probe path an instance never becomes ready.
_TRITON_GET = re.compile(r"/v2(/health/(live|ready)|/models/[^/]+(/versions/[0-9]+)?(/(ready|config|stats))?)?/?")
_ROUTE = re.compile(r"/[!-~]*")
_INVALID_IN_PATHS = re.compile(r"[?#\\%]")


@dataclass(frozen=True, slots=True)
class Container:
    """What an instance runs instead of this server's own Triton.

    The paths are HTTP paths on ``port``. ``model_dir``: the directory in ``AZUREML_MODEL_DIR``.
    ``folder``: the directory in it that holds the model's files; empty for a single file, which is
    in ``model_dir`` itself. ``repository``: the model repository that Triton loads, relative to
    ``model_dir``; None if the image's own command decides.
    """

    image: str
    port: int
    liveness_path: str
    readiness_path: str
    scoring_path: str
    model_dir: str
    folder: str
    repository: str | None = None

    @property
    def mount(self) -> str:
        """The path of the model's files in the container."""
        return f"{self.model_dir.rstrip('/')}/{self.folder}".rstrip("/")

    @property
    def repository_path(self) -> str | None:
        """The path of the model repository in the container, None without one."""
        return None if self.repository is None else f"{self.model_dir.rstrip('/')}/{self.repository}".rstrip("/")


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """The files of a model version.

    ``folder``: the directory name that was uploaded, empty for a single file. ``repository``: the
    Triton model repository, relative to the directory that holds ``folder``; None if the files are
    no repository, for the reasons in ``problems``. ``model_names``: the Triton models in it.
    """

    name: str
    version: str
    folder: str
    repository: str | None
    model_names: tuple[str, ...] = ()
    problems: tuple[Violation, ...] = ()


def resolve_container(
    document: Document,
    environment: Document,
    files: ModelFiles,
    *,
    on_cluster: bool,
    local_images: Collection[str] = (),
) -> tuple[Container | None, list[Violation]]:
    """The container of a deployment document, or all violations.

    ``environment``: the document that the deployment's reference resolves to. ``on_cluster``: the
    instances are pods. ``local_images``: more image repositories to treat as Triton where the
    runtime starts no containers.
    """
    violations = _check_environment(environment)
    image = images.parse(str(environment.get("image") or ""))
    triton = image is not None and (image.is_triton or (not on_cluster and image.matches(local_images)))
    if environment.get("image"):
        violations += _check_image(str(environment["image"]), image, triton=triton, on_cluster=on_cluster)
    port, paths, route_violations = _check_routes(environment, triton=triton, on_cluster=on_cluster)
    violations += (
        route_violations + _check_document(document, scoring_path=paths[2]) + _check_files(files, needed=triton)
    )
    if violations or image is None:
        return None, violations
    mount = document.get("model_mount_path") or f"{MODELS_ROOT}/{files.name}/{files.version}"
    return Container(
        image=str(environment["image"]),
        port=port,
        liveness_path=paths[0],
        readiness_path=paths[1],
        scoring_path=paths[2],
        model_dir=str(mount).rstrip("/"),
        folder=files.folder,
        repository=files.repository if triton else None,
    ), []


def check_mount_path(document: Document) -> list[Violation]:
    """Violations of ``model_mount_path``."""
    path = document.get("model_mount_path")
    if path is None:
        return []
    if not path.startswith("/") or path.rstrip("/") == "" or ".." in path.split("/"):
        return [Violation(("model_mount_path",), f"{path} is not an absolute path of a directory", "such as /models")]
    if ":" in path:
        return [Violation(("model_mount_path",), f"{path}: a mount path cannot contain a colon", "such as /models")]
    return []


def _check_environment(environment: Document) -> list[Violation]:
    """This server builds no images: the environment must name one, and add nothing to it."""
    violations = []
    if environment.get("conda_file"):
        hint = "use an image that includes everything that the model needs, and remove conda_file"
        violations.append(
            _violation("conda_file", "this server builds no images, so it cannot use a conda environment", hint)
        )
    if environment.get("build"):
        hint = "build and push the image (docker build, docker push), then set environment.image: <name>:<tag>"
        violations.append(_violation("build", "this server builds no images", hint))
    if not environment.get("image") and not violations:
        hint = "set environment.image, such as nvcr.io/nvidia/tritonserver:<release>-py3"
        violations.append(_violation("image", "required: the environment names no image", hint))
    if environment.get("os_type", "linux") != "linux":
        violations.append(_violation("os_type", "this server runs Linux containers only", "set os_type: linux"))
    return violations


def _check_image(text: str, image: images.Image | None, *, triton: bool, on_cluster: bool) -> list[Violation]:
    if image is None:
        hint = "write it as nvcr.io/nvidia/tritonserver:25.04-py3, with the name in lower case"
        return [_violation("image", f"{text!r} is not a valid image reference", hint)]
    if on_cluster or triton:
        return []
    message = f"this machine runs no containers; image {text} is not a Triton image"
    hint = (
        "use an endpoint on a Kubernetes compute, an image of nvcr.io/nvidia/tritonserver, or a model of type "
        f"triton_model without an environment; if {image.repository} is Triton, start the server with "
        f"ML_LOCAL_TRITON_IMAGES={image.repository}"
    )
    return [_violation("image", message, hint)]


def _check_routes(
    environment: Document, *, triton: bool, on_cluster: bool
) -> tuple[int, tuple[str, str, str], list[Violation]]:
    """The port, the paths (liveness, readiness, scoring) and the violations of
    ``inference_config``."""
    routes_document = environment.get("inference_config")
    live, ready, score = _TRITON_PATHS
    if not routes_document:
        unknown = bool(environment.get("image")) and on_cluster and not triton
        missing = [_violation("inference_config", _ROUTES_REQUIRED[0], _ROUTES_REQUIRED[1])] if unknown else []
        return _TRITON_PORT, (live, ready, score), missing
    routes = {name: routes_document[name] for name in _ROUTE_NAMES}
    violations = [
        violation
        for name in _ROUTE_NAMES
        for violation in _check_route_path(name, str(routes[name]["path"]), triton=triton)
    ]
    ports = {name: int(routes[name]["port"]) for name in _ROUTE_NAMES}
    if triton and ports["scoring_route"] == _TRITON_GRPC_PORT:
        # Azure ML's example for gRPC. Endpoints answer both protocols, whatever the port here.
        ports["scoring_route"] = ports["readiness_route"]
    if len(set(ports.values())) > 1:
        port_list = ", ".join(f"{name.removesuffix('_route')} {port}" for name, port in ports.items())
        message = f"the routes have different ports ({port_list}); an instance has one port"
        violations.append(_violation("inference_config", message, "set the same port for all three routes"))
    live, ready, score = (str(routes[name]["path"]) for name in _ROUTE_NAMES)
    return ports["scoring_route"], (live, ready, score), violations


_ROUTES_REQUIRED = (
    "required for an image that is not named tritonserver, because its port and routes are unknown",
    "set liveness_route, readiness_route and scoring_route, each with port and path; Triton's are "
    "/v2/health/live, /v2/health/ready and / on port 8000",
)


def _check_route_path(name: str, path: str, *, triton: bool) -> list[Violation]:
    at = ("inference_config", name, "path")
    if not _ROUTE.fullmatch(path) or _INVALID_IN_PATHS.search(path):
        hint = "write a path such as /v2/health/ready, without a query or escape sequences"
        return [_violation(at, f"{path!r} is not a valid URL path", hint)]
    if triton and name != "scoring_route" and not _TRITON_GET.fullmatch(path):
        hint = "allowed: /v2/health/live, /v2/health/ready, /v2, and /v2/models/<model>/ready"
        return [_violation(at, f"Triton does not answer GET {path}, so no instance would become ready", hint)]
    if triton and name == "scoring_route" and path != "/" and not path.startswith("/v2/models/"):
        hint = "allowed: / (for the only model) and /v2/models/<model>/infer"
        return [_violation(at, f"Triton does not answer POST {path}", hint)]
    return []


def _check_document(document: Document, *, scoring_path: str) -> list[Violation]:
    violations = check_mount_path(document)
    if MODEL_DIR in (document.get("environment_variables") or {}):
        path = ("environment_variables", MODEL_DIR)
        hint = "remove it; model_mount_path changes the directory"
        violations.append(Violation(path, f"{MODEL_DIR} is set by the server", hint))
    if scoring_path != "/" and SCORING_MODEL in (document.get("properties") or {}):
        message = f"the environment's scoring route {scoring_path} already decides where requests go"
        violations.append(Violation(("properties", SCORING_MODEL), message, "remove one of the two"))
    return violations


def _check_files(files: ModelFiles, *, needed: bool) -> list[Violation]:
    """``needed``: Triton loads the files, so they must be a model repository."""
    if ":" in files.folder or files.folder in (".", ".."):
        hint = "rename the directory and register the model again"
        return [Violation(("model",), f"the directory name {files.folder!r} cannot be mounted", hint)]
    if not needed or files.repository is not None:
        return []
    hint = "arrange the files as <model name>/<version number>/<model file>, or set path to the directory of one model"
    why = "; ".join(problem.message for problem in files.problems) or "it contains no model directory"
    return [Violation(("model",), f"model {files.name}:{files.version} is not a Triton model repository: {why}", hint)]


def _violation(part: str | Path, message: str, hint: str) -> Violation:
    """A violation of one part of the environment."""
    return Violation(("environment", *([part] if isinstance(part, str) else part)), message, hint)
