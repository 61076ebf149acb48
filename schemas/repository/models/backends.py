"""The backend of a model: platform, backend and file name, as Triton completes and checks them.

Decides the fields that Triton completes from the first version directory
(``AutoCompleteBackendFields``), the pairs that it refuses (``ValidateModelConfig``), and whether a
server has the backend (``TritonModel::Create``). Must not know tensors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from amphitrite.schemas.repository.config.syntax_tree import Message
from amphitrite.schemas.repository.files.file_listing import Server
from amphitrite.schemas.repository.files.findings import closest, listed
from amphitrite.schemas.repository.models.rule_report import Report

ENSEMBLE = "ensemble"
#: Backend -> (its platform, its file). Other backends accept any platform.
_KNOWN = {
    "tensorrt": ("tensorrt_plan", "model.plan"),
    "onnxruntime": ("onnxruntime_onnx", "model.onnx"),
    "openvino": ("", "model.xml"),
    "pytorch": ("pytorch_libtorch", "model.pt"),
    "python": ("", "model.py"),
}
_TENSORFLOW = {"tensorflow_savedmodel": "model.savedmodel", "tensorflow_graphdef": "model.graphdef"}
_STRICT = ("tensorrt", "tensorflow", "onnxruntime", "pytorch")
_PLATFORMS = ("ensemble", "onnxruntime_onnx", "pytorch_libtorch", "tensorrt_plan", *sorted(_TENSORFLOW))


@dataclass(frozen=True, slots=True)
class BackendFields:
    """The three fields after completion by Triton; each is empty if it is unknown."""

    platform: str = ""
    backend: str = ""
    filename: str = ""


def resolve(config: Message, name: str, first_version: Mapping[str, bool] | None) -> BackendFields | None:
    """The completed fields; None if Triton cannot tell the backend.

    ``first_version``: the entries of the model's first directory, name -> whether it is a
    directory; None if the model has no directory.
    """
    platform, backend, filename = config.text("platform"), config.text("backend"), config.text("default_model_filename")
    entries = first_version or {}
    may_guess = not platform and not filename and first_version is not None
    if not platform and backend in ("", "tensorflow"):
        for kind, file in _TENSORFLOW.items():
            is_directory = kind == "tensorflow_savedmodel"
            if filename == file or (not filename and entries.get(file) is is_directory):
                platform = kind
    if platform in _TENSORFLOW:
        return BackendFields(platform, backend or "tensorflow", filename or _TENSORFLOW[platform])
    for known, (its_platform, its_file) in _KNOWN.items():
        if not backend:
            # An ONNX model may be a directory; a TensorRT plan or PyTorch model may not.
            is_present = its_file in entries and not (known in ("tensorrt", "pytorch") and entries[its_file])
            if (its_platform and platform == its_platform) or filename == its_file or (may_guess and is_present):
                backend = known
        if backend == known:
            return BackendFields(platform or its_platform, backend, filename or its_file)
    if not backend and not platform and not filename:
        _, dot, end = name.partition(".")
        return BackendFields("", end, f"model.{end}") if dot else None
    return BackendFields(platform, backend, filename)


def check(report: Report, config: Message, backend_fields: BackendFields | None, server: Server) -> bool:
    """Report problems of the backend; return whether the other rules can be checked."""
    findings_before = len(report.findings)
    if backend_fields is None:
        report.model(
            "no-backend",
            "Triton cannot tell which backend loads this model",
            allowed="`backend` in config.pbtxt, or a file model.onnx or model.py in the first directory",
            fix=_no_backend_fix(report),
        )
        return False
    if backend_fields.platform == ENSEMBLE:
        if backend_fields.backend:
            report.field(
                config,
                "backend",
                "ensemble-backend",
                "an ensemble must not have a backend",
                found=f'"{backend_fields.backend}"',
                fix="remove `backend`",
            )
    elif not backend_fields.backend:
        _unknown_platform(report, config, backend_fields)
    else:
        _check_pair(report, config, backend_fields)
        _check_available(report, config, backend_fields, server)
    return len(report.findings) == findings_before


def _check_pair(report: Report, config: Message, backend_fields: BackendFields) -> None:
    own_platform = _KNOWN.get(backend_fields.backend, ("",))[0]
    platforms = sorted(_TENSORFLOW) if backend_fields.backend == "tensorflow" else [own_platform]
    if backend_fields.backend in _STRICT and backend_fields.platform not in platforms:
        message = f'platform "{backend_fields.platform}" does not match backend "{backend_fields.backend}"'
        report.field(
            config, "platform", "platform", message,
            allowed=listed(platforms), fix="remove `platform`",
        )  # fmt: skip


def _check_available(report: Report, config: Message, backend_fields: BackendFields, server: Server) -> None:
    own_runtimes = {f"libtriton_{backend_fields.backend}.so", "model.py"}
    runtime = config.text("runtime")
    if server.backends is not None and backend_fields.backend not in server.backends:
        field = "backend" if config.has("backend") else "platform" if config.has("platform") else ""
        text, allowed = (
            f"this server does not have the backend `{backend_fields.backend}`",
            listed(sorted(server.backends)),
        )
        fix = "export the model to ONNX, or use a cluster with an image that has this backend"
        if field:
            guess = closest(backend_fields.backend, sorted(server.backends), cutoff=0.75)
            report.field(
                config, field, "backend-unavailable", text, allowed=allowed, near=guess, fix=None if guess else fix
            )
        else:
            directory = "/".join([report.name, *report.directories[:1]])
            report.file(f"{directory}/{backend_fields.filename}", "backend-unavailable", text, allowed=allowed, fix=fix)
    elif runtime and runtime not in own_runtimes and server.backends is not None:
        report.field(
            config,
            "runtime",
            "runtime",
            f"unknown runtime of backend `{backend_fields.backend}`",
            found=f'"{runtime}"',
            fix="remove `runtime`",
        )


def _unknown_platform(report: Report, config: Message, backend_fields: BackendFields) -> None:
    if backend_fields.platform:
        is_backend = backend_fields.platform in _KNOWN
        report.field(
            config, "platform", "platform", "unknown platform", found=f'"{backend_fields.platform}"',
            allowed=None if is_backend else listed(_PLATFORMS),
            near=None if is_backend else closest(backend_fields.platform, _PLATFORMS),
            fix=f'write backend: "{backend_fields.platform}"' if is_backend else None,
        )  # fmt: skip
        return
    suffix = backend_fields.filename.rpartition(".")[2]
    backend = {"onnx": "onnxruntime", "py": "python", "plan": "tensorrt", "pt": "pytorch"}.get(suffix)
    report.field(
        config, "default_model_filename", "no-backend",
        "the name of this file does not imply a backend, and `backend` is missing",
        fix=f'add backend: "{backend}"' if backend else "add `backend`",
    )  # fmt: skip


def _no_backend_fix(report: Report) -> str:
    hidden = [directory for directory in report.directories if not directory[:1].isalnum()]
    if hidden and hidden[0] == report.directories[0]:
        return f"remove the directory `{hidden[0]}`: Triton takes the first directory for a version"
    return 'add config.pbtxt with backend: "onnxruntime" or "python", or rename the file to model.onnx or model.py'


def entries(paths: Iterator[str], directory: str) -> dict[str, bool]:
    """The entries of a directory of the model: name -> whether it is a directory."""
    result: dict[str, bool] = {}
    for path in paths:
        first, slash, rest = path.partition("/")
        if slash and first == directory and rest:
            name, below, _ = rest.partition("/")
            result[name] = result.get(name, False) or bool(below)
    return result
