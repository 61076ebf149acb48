"""Rules for the files that a backend loads: Python, ONNX Runtime, others.

Decides the files that a backend needs, and the inputs and outputs of the model that follow from
them. Must not know layout or ensembles.
"""

from __future__ import annotations

from amphitrite.schemas.repository.files.file_listing import read_text
from amphitrite.schemas.repository.models.backends import ENSEMBLE, BackendFields
from amphitrite.schemas.repository.models.model_context import ModelContext
from amphitrite.schemas.repository.onnx import onnx_rules
from amphitrite.schemas.repository.rules import completion, python_model, tensors
from amphitrite.schemas.repository.rules.python_model import PythonModel
from amphitrite.schemas.repository.rules.tensors import Signature

#: Modules that Triton itself provides.
_OF_TRITON = ("triton_python_backend_utils", "c_python_backend_utils")


def signature(model: ModelContext, backend_fields: BackendFields, versions: tuple[int, ...]) -> Signature | None:
    """Report problems of the files; return inputs and outputs, None if they are unknown."""
    report, config, server = model.report, model.config, model.server
    is_ours = backend_fields.backend == "onnxruntime" and server.onnxruntime_is_ours
    result: Signature | None = tensors.declared(config)
    completed = is_ours
    if backend_fields.backend == "python":
        completed, result = _python(model, backend_fields, versions, result)
    elif backend_fields.backend == "onnxruntime":
        result = _onnx(model, backend_fields, versions)
    elif backend_fields.platform != ENSEMBLE:
        completed, result = True, None
        _require_file(model, backend_fields, versions)
    if is_ours and any(f.code == "dims" for f in report.findings):
        return None
    tensors.check(
        report,
        config,
        server,
        platform=backend_fields.platform,
        completed=completed,
        batching=config.number("max_batch_size") > 0 or (result is not None and result.max_batch_size > 0),
    )
    return result


def _python(
    model: ModelContext, backend_fields: BackendFields, versions: tuple[int, ...], declared: Signature | None
) -> tuple[bool, Signature | None]:
    """(whether the model completes its configuration itself, its signature)."""
    completes = False
    if not backend_fields.filename.endswith(".py"):
        model.report.field(
            model.config,
            "default_model_filename",
            "file-name",
            "the file of a Python model must end with .py",
            found=f'"{backend_fields.filename}"',
            allowed="a name that ends with .py",
        )
        return True, None
    for version in versions:
        path = f"{model.name}/{version}/{backend_fields.filename}"
        if path not in model.files.sizes:
            _missing(model, path, version, backend_fields)
            continue
        try:
            text = read_text(model.files, path)
        except OSError as exc:
            model.report.file(path, "unreadable", f"cannot read `{path}`: {exc.strerror or exc}")
            continue
        if text is None:
            completes = True
            continue
        code = python_model.check(model.report, path, text)
        completes = completes or code.completes
        _check_imports(model, version, path, code)
        if code.executes is False and any(s.number("batch_size") for s in model.config.children("model_warmup")):
            model.report.field(
                model.config,
                "model_warmup",
                "warmup",
                "the model has no method `execute`, which the warm-up needs",
                fix="add def execute(self, requests)",
            )
    _check_ids(model)
    _check_environment(model)
    return completes, None if completes else declared


def _onnx(model: ModelContext, backend_fields: BackendFields, versions: tuple[int, ...]) -> Signature | None:
    """The signature of the newest version, which Triton uses for ensembles."""
    signature = None
    for version in versions:
        path = model.paths.file_of(version, backend_fields.filename)
        if path is None:
            _missing(model, f"{model.name}/{version}/{backend_fields.filename}", version, backend_fields)
            return None
        graph = onnx_rules.read(model.report, model.files, path, model.server.onnxruntime)
        signature = None
        if graph is not None and model.server.onnxruntime_is_ours:
            signature = completion.complete(model.report, model.config, graph, path).signature
    return signature


def _require_file(model: ModelContext, backend_fields: BackendFields, versions: tuple[int, ...]) -> None:
    """Check that the file of another backend exists. Its content is not checked."""
    if not backend_fields.filename or model.config.has("cc_model_filenames") or backend_fields.backend == "tensorflow":
        return
    for version in versions:
        if model.paths.file_of(version, backend_fields.filename) is None and backend_fields.backend in (
            "tensorrt",
            "pytorch",
            "openvino",
        ):
            _missing(model, f"{model.name}/{version}/{backend_fields.filename}", version, backend_fields)


def _missing(model: ModelContext, path: str, version: int, backend_fields: BackendFields) -> None:
    others = model.paths.files_of(version)
    named = model.config.has("default_model_filename")
    end = backend_fields.filename.rpartition(".")[2]
    alike = [other for other in others if "/" not in other and other.endswith(f".{end}")]
    directory = f"{model.name}/{version}"
    fix = f"add it to {directory}" + ("" if named else f", or remove the directory {directory}")
    if len(alike) == 1:
        fix = f'write "{alike[0]}"' if named else f"rename `{alike[0]}` to {backend_fields.filename}"
    if named:
        model.report.field(
            model.config,
            "default_model_filename",
            "no-model-file",
            f"`{path}` does not exist",
            found=f'"{backend_fields.filename}"',
            allowed=", ".join(others) or None,
            fix=fix,
        )
    else:
        model.report.file(
            path, "no-model-file", f"`{path}` does not exist", found=", ".join(others[:5]) or None, fix=fix
        )


def _check_ids(model: ModelContext) -> None:
    """Warn of ids as strings: Triton 2.51 gives the control input bytes behind the string."""
    batcher = model.config.child("sequence_batching")
    for entry in batcher.children("control_input") if batcher and model.server.onnxruntime_is_ours else ():
        for control in entry.children("control"):
            if control.enum_name("data_type") == "TYPE_STRING":
                model.report.field(
                    control,
                    "data_type",
                    "sequence-control",
                    f"{model.server.shown} refuses every request to a Python model with ids as strings in an input",
                    severity="warning",
                    fix="remove the control, and call request.correlation_id()",
                )


def _check_environment(model: ModelContext) -> None:
    parameters = model.config.mapping("parameters")
    if "EXECUTION_ENV_PATH" not in parameters:
        return
    entry = parameters["EXECUTION_ENV_PATH"].message
    path = entry.text("string_value")
    inner_path = path.removeprefix("$$TRITON_MODEL_DIRECTORY/")
    if inner_path == path:
        model.report.field(
            entry,
            "string_value",
            "environment",
            "this environment is outside the repository, so it cannot be checked",
            severity="warning",
            found=f'"{path}"',
            fix="move it to the model's directory: $$TRITON_MODEL_DIRECTORY/environment.tar.gz",
        )
    elif not model.paths.exists(inner_path):
        model.report.field(
            entry, "string_value", "missing-file", f"`{model.name}/{inner_path}` does not exist", found=f'"{path}"'
        )


def _check_imports(model: ModelContext, version: int, path: str, code: PythonModel) -> None:
    """Report modules that neither the server nor the model's directory has."""
    if model.server.has_module is None or "EXECUTION_ENV_PATH" in model.config.mapping("parameters"):
        return  # The model's own environment may have them.
    beside = {file.split("/")[0].removesuffix(".py") for file in model.paths.files_of(version)}
    beside |= {file.split("/")[0].removesuffix(".py") for file in model.paths.sizes}
    for module, line, column in code.imports:
        if module not in _OF_TRITON and module not in beside and not model.server.has_module(module):
            model.report.file(
                path,
                "python-import",
                f"this server does not have the Python module `{module}`",
                line=line,
                column=column,
                fix="install it in the environment of the server, or add it next to model.py",
            )
