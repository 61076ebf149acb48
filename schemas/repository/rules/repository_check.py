"""Checks a whole repository against all rules.

Decides the order of the rules, and which rules are skipped after earlier errors. Must not know
where files are stored.
"""

from __future__ import annotations

from collections.abc import Sequence

from amphitrite.schemas.repository.files.file_listing import Repository, Server
from amphitrite.schemas.repository.files.findings import Finding
from amphitrite.schemas.repository.models import backends, layout, model_context, versions
from amphitrite.schemas.repository.models.backends import ENSEMBLE, BackendFields
from amphitrite.schemas.repository.models.model_context import ModelContext
from amphitrite.schemas.repository.rules import batching, ensemble_models, ensembles, instance_groups, programs, warmup
from amphitrite.schemas.repository.rules.ensemble_models import CheckedModel
from amphitrite.schemas.repository.rules.tensors import Signature, declared

_DEFAULT = Server()
#: Any backends, and ONNX files are read for what config.pbtxt leaves out.
_ANY_WITH_OUR_ONNX = Server(backends=None)


def validate(files: Repository, *, server: Server = _DEFAULT) -> list[Finding]:
    """All findings about a repository, sorted by model, file and position; empty without problems.

    ``error``: Triton does not load the model. ``warning``: it does, but probably not as intended.
    Of an ONNX file only the graph is read.
    """
    findings = layout.check(list(files.sizes))
    if any(finding.file == "" or finding.code == "model-name" for finding in findings):
        return findings
    models = _checked(files, findings, server)
    for checked in models.values():
        findings += sorted(checked.report.findings, key=lambda f: (f.file, f.line or 0, f.column or 0))
    return findings


def signatures(files: Repository, *, server: Server = _ANY_WITH_OUR_ONNX) -> dict[str, Signature | None]:
    """The inputs and outputs of each model of a repository, by its name: those of the file that is
    loaded, else those in config.pbtxt. None if neither has them."""
    models = _checked(files, layout.check(list(files.sizes)), server)
    return {name: checked.signature or _declared(checked) for name, checked in models.items()}


def _declared(checked: CheckedModel) -> Signature | None:
    signature = declared(checked.config)
    return signature if signature.inputs and signature.outputs else None


def _checked(files: Repository, findings: Sequence[Finding], server: Server) -> dict[str, CheckedModel]:
    """``findings``: about the layout."""
    layout_errors = {finding.file.partition("/")[0] for finding in findings if finding.severity == "error"}
    models = {}
    for name, paths in layout.models(files.sizes).items():
        empty = [path.removeprefix(f"{name}/") for path in files.directories if path.startswith(f"{name}/")]
        models[name] = _check_model(
            model_context.read(files, name, paths, empty, server), has_layout_errors=name in layout_errors
        )
    ensemble_models.check(models)
    return models


def _check_model(model: ModelContext, *, has_layout_errors: bool) -> CheckedModel:
    """Check one model. ``has_layout_errors``: its layout has errors, which are reported already."""
    signature: Signature | None = None
    loaded: tuple[int, ...] = ()
    if model.readable and not has_layout_errors:
        loaded = versions.check(model)
        signature = _check_rules(model, loaded)
    return CheckedModel(model.report, model.config, loaded, None if model.report.failed else signature)


def _check_rules(model: ModelContext, loaded: tuple[int, ...]) -> Signature | None:
    report, config, server = model.report, model.config, model.server
    if (name := config.text("name")) and name != model.name:
        report.field(config, "name", "name", "the name must be that of the model's directory", found=f'"{name}"',
                     allowed=f'"{model.name}"', fix="remove `name`, or rename the directory")  # fmt: skip
    _check_agents(model)
    batching.check(report, config, model.paths.sizes)
    backend_fields = backends.resolve(config, model.name, model.paths.first_directory)
    ensembles.check(report, config, backend_fields or BackendFields())
    if backend_fields is None and config.incomplete:
        return None  # The parts that could not be read may name the backend.
    if not backends.check(report, config, backend_fields, server) or backend_fields is None:
        return None
    signature = programs.signature(model, backend_fields, loaded)
    if backend_fields.platform != ENSEMBLE:
        instance_groups.check(report, config, server, backend_fields.platform)
        warmup.check(report, config, model.paths.sizes, signature, batching.controls(config))
        if server.onnxruntime_is_ours:
            warmup.check_states(report, config)
    _check_labels(model)
    return signature


def _check_labels(model: ModelContext) -> None:
    for entry in model.config.children("output"):
        label = entry.text("label_filename")
        path = model.paths.resolved(label) if label else None
        if not label or (path is not None and path in model.files.sizes):
            if label and path is not None and not path.startswith(f"{model.name}/"):
                later = model.server.version >= (2, 60)
                model.report.field(
                    entry,
                    "label_filename",
                    "label-file",
                    "the labels are outside the model's directory",
                    severity="error" if later else "warning",
                    found=f'"{label}"',
                    fix="move the file to the directory of config.pbtxt",
                )
            continue
        model.report.field(
            entry,
            "label_filename",
            "missing-file",
            f"`{model.name}/{label}` does not exist",
            found=f'"{label}"',
            fix="add the file to the directory of config.pbtxt, or remove label_filename",
        )


def _check_agents(model: ModelContext) -> None:
    agents = model.config.child("model_repository_agents")
    for agent in agents.children("agents") if agents else ():
        if model.server.backends is not None:
            model.report.field(agent, "name", "repository-agent", "this server does not have repository agents",
                               found=f'"{agent.text("name")}"', fix="remove `model_repository_agents`")  # fmt: skip
