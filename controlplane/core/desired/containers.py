"""Custom containers: from a deployment and its environment to what one instance runs, or why nothing can.

Decides which environments this server can run, the routes and the port of the server inside, where the model's files
lie, and which model repository Triton is pointed to. Must not know pods, processes or the store.

Azure ML's rules (its documentation "Use a custom container", and the public example ``custom-container/triton``):
the model's files are below ``model_mount_path``, or below ``/var/azureml-app/azureml-models/<name>/<version>``, under
the name that the directory had where it was uploaded; ``AZUREML_MODEL_DIR`` names the former. So that example's
``model_1`` is found at ``/models/model_1``, where its image's command looks for it.
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

#: Where Azure ML puts models of deployments without ``model_mount_path``.
MODELS = "/var/azureml-app/azureml-models"
#: The variable that names the directory above the model's files.
MODEL_DIR = "AZUREML_MODEL_DIR"
#: The property that names the model which a POST to the scoring address is for.
SCORING_MODEL = "amphitrite.scoring_model"

_ROUTES = ("liveness_route", "readiness_route", "scoring_route")
#: Triton's own. ``/`` as the scoring route: Triton answers nothing there, so the only model is meant.
_TRITON_PORT, _TRITON_PATHS = 8000, ("/v2/health/live", "/v2/health/ready", "/")
#: What Triton answers to GET; with anything else an instance never gets ready.
_TRITON_GET = re.compile(r"/v2(/health/(live|ready)|/models/[^/]+(/versions/[0-9]+)?(/(ready|config|stats))?)?/?")
_ROUTE = re.compile(r"/[!-~]*")
_NOT_IN_PATHS = re.compile(r"[?#\\%]")


@dataclass(frozen=True, slots=True)
class Container:
    """What one instance runs in place of our own Triton. Paths of routes are HTTP's, ``port`` is that of all three.

    ``model_dir``: the directory that ``AZUREML_MODEL_DIR`` names in a container. ``folder``: the directory of the
    model's files in there; empty for a single file, which lies there itself. ``repository``: the model repository,
    relative to ``model_dir``, that Triton is pointed to; None: the image's own command knows.
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
        """Where the model's files are in the container."""
        return f"{self.model_dir.rstrip('/')}/{self.folder}".rstrip("/")

    @property
    def repository_path(self) -> str | None:
        """The model repository in the container."""
        return None if self.repository is None else f"{self.model_dir.rstrip('/')}/{self.repository}".rstrip("/")


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A model version's files. ``folder``: the name under which they were uploaded, empty for a single file.
    ``repository``: where among them Triton's repository begins, relative to the directory that holds ``folder``; None
    when they are none, for the reasons ``problems``. ``model_names``: the Triton models in it."""

    name: str
    version: str
    folder: str
    repository: str | None
    model_names: tuple[str, ...] = ()
    problems: tuple[Violation, ...] = ()


def decide(
    document: Document,
    environment: Document,
    files: ModelFiles,
    *,
    on_cluster: bool,
    local_images: Collection[str] = (),
) -> tuple[Container | None, list[Violation]]:
    """The container of a deployment document, or everything that is wrong. ``environment``: what its reference leads
    to. ``local_images``: further repositories whose images are Triton, for where no image is run."""
    found = _environment(environment)
    image = images.parse(str(environment.get("image") or ""))
    triton = image is not None and (image.is_triton or (not on_cluster and image.matches(local_images)))
    if environment.get("image"):
        found += _image(str(environment["image"]), image, triton=triton, on_cluster=on_cluster)
    port, paths, wrong = _routes(environment, triton=triton, on_cluster=on_cluster)
    found += wrong + _document(document, scoring_path=paths[2]) + _files(files, needed=triton)
    if found or image is None:
        return None, found
    mount = document.get("model_mount_path") or f"{MODELS}/{files.name}/{files.version}"
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


def mount_path(document: Document) -> list[Violation]:
    """What is wrong with ``model_mount_path``."""
    path = document.get("model_mount_path")
    if path is None:
        return []
    if not path.startswith("/") or path.rstrip("/") == "" or ".." in path.split("/"):
        return [Violation(("model_mount_path",), f"{path} is no absolute path of a directory", "such as /models")]
    if ":" in path:
        return [Violation(("model_mount_path",), f"{path}: a path to mount has no colon", "such as /models")]
    return []


def _environment(environment: Document) -> list[Violation]:
    """Nothing is built here: there must be an image, and nothing to be added to it."""
    found = []
    if environment.get("conda_file"):
        hint = "use an image that holds all that the model needs, Python packages too, and remove conda_file"
        found.append(_of("conda_file", "this server builds no images, so there is no conda environment", hint))
    if environment.get("build"):
        hint = "build and push it yourself (docker build, docker push), then write environment.image: <name>:<tag>"
        found.append(_of("build", "this server builds no images", hint))
    if not environment.get("image") and not found:
        hint = "environment.image: nvcr.io/nvidia/tritonserver:<release>-py3"
        found.append(_of("image", "required: there is nothing to run", hint))
    if environment.get("os_type", "linux") != "linux":
        found.append(_of("os_type", "only Linux containers can be run", "set os_type: linux"))
    return found


def _image(text: str, image: images.Image | None, *, triton: bool, on_cluster: bool) -> list[Violation]:
    if image is None:
        hint = "such as nvcr.io/nvidia/tritonserver:25.04-py3; the name in lower case"
        return [_of("image", f"{text!r} is no reference to an image", hint)]
    if on_cluster or triton:
        return []
    message = f"this machine runs no containers; image {text} is not a Triton image"
    hint = (
        "use an endpoint on a Kubernetes compute, an image of nvcr.io/nvidia/tritonserver, or a model of type "
        f"triton_model without environment; if {image.repository} is Triton, start the server with "
        f"ML_LOCAL_TRITON_IMAGES={image.repository}"
    )
    return [_of("image", message, hint)]


def _routes(
    environment: Document, *, triton: bool, on_cluster: bool
) -> tuple[int, tuple[str, str, str], list[Violation]]:
    """Port and paths (liveness, readiness, scoring)."""
    given = environment.get("inference_config")
    live, ready, score = _TRITON_PATHS
    if not given:
        unknown = bool(environment.get("image")) and on_cluster and not triton
        missing = [_of("inference_config", _NO_ROUTES[0], _NO_ROUTES[1])] if unknown else []
        return _TRITON_PORT, (live, ready, score), missing
    routes = {name: given[name] for name in _ROUTES}
    found = [wrong for name in _ROUTES for wrong in _path(name, str(routes[name]["path"]), triton=triton)]
    ports = {name: int(routes[name]["port"]) for name in _ROUTES}
    if len(set(ports.values())) > 1:
        said = ", ".join(f"{name.removesuffix('_route')} {port}" for name, port in ports.items())
        message = f"the routes have different ports ({said}); an instance is asked on one port"
        found.append(_of("inference_config", message, "give all three routes the same port"))
    live, ready, score = (str(routes[name]["path"]) for name in _ROUTES)
    return ports["scoring_route"], (live, ready, score), found


_NO_ROUTES = (
    "required for an image that is not named tritonserver: nobody knows its port and routes",
    "give liveness_route, readiness_route and scoring_route, each with port and path; Triton's are "
    "/v2/health/live, /v2/health/ready and / on port 8000",
)


def _path(name: str, path: str, *, triton: bool) -> list[Violation]:
    at = ("inference_config", name, "path")
    if not _ROUTE.fullmatch(path) or _NOT_IN_PATHS.search(path):
        hint = "a path such as /v2/health/ready, without query and escapes"
        return [_of(at, f"{path!r} is no path of a URL", hint)]
    if triton and name != "scoring_route" and not _TRITON_GET.fullmatch(path):
        hint = "allowed: /v2/health/live, /v2/health/ready, /v2, and /v2/models/<model>/ready"
        return [_of(at, f"Triton answers no GET {path}, so no instance would ever be ready", hint)]
    if triton and name == "scoring_route" and path != "/" and not path.startswith("/v2/models/"):
        hint = "allowed: / (the only model is meant) and /v2/models/<model>/infer"
        return [_of(at, f"Triton answers no POST {path}", hint)]
    return []


def _document(document: Document, *, scoring_path: str) -> list[Violation]:
    found = mount_path(document)
    if MODEL_DIR in (document.get("environment_variables") or {}):
        path = ("environment_variables", MODEL_DIR)
        found.append(Violation(path, f"{MODEL_DIR} is set by the server itself", "remove it; see model_mount_path"))
    if scoring_path != "/" and SCORING_MODEL in (document.get("properties") or {}):
        message = f"the environment's scoring route {scoring_path} says already where requests go"
        found.append(Violation(("properties", SCORING_MODEL), message, "remove one of the two"))
    return found


def _files(files: ModelFiles, *, needed: bool) -> list[Violation]:
    """``needed``: Triton is pointed to them, so they must be a repository."""
    if ":" in files.folder or files.folder in (".", ".."):
        hint = "rename the directory and register the model again"
        return [Violation(("model",), f"a directory called {files.folder!r} cannot be mounted", hint)]
    if not needed or files.repository is not None:
        return []
    hint = "lay the files out as <model name>/<version number>/<model file>, or give path the directory of one model"
    why = "; ".join(problem.message for problem in files.problems) or "it holds no model directory"
    return [Violation(("model",), f"model {files.name}:{files.version} is no Triton model repository: {why}", hint)]


def _of(part: str | Path, message: str, hint: str) -> Violation:
    """About a part of the environment."""
    return Violation(("environment", *([part] if isinstance(part, str) else part)), message, hint)
