"""Options and verbs of ``az ml`` that have no meaning here.

Decides which are refused, why, and what to do instead: what cannot be honoured is said, never swallowed. Must not know
any verb.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from amphitrite.schemas.errors import Error

_NO_REGISTRY = "there are no registries here; models and environments live in the workspace"
#: Parameter -> (option, why, what to do).
_REASONS: Mapping[str, tuple[str, str, str]] = {
    "web": ("--web", "there is no web page of it to open", "leave it out: show prints the same"),
    "vscode_debug": (
        "--vscode-debug",
        "an instance is a Triton, there is no Python process of yours to attach a debugger to",
        "ml online-deployment get-logs --follow shows what it does",
    ),
    "package_model": (
        "--package-model",
        "models are not packaged into images; they are delivered to instances as they are",
        "leave it out",
    ),
    "local_enable_gpu": (
        "--local-enable-gpu",
        "the instance type says whether an instance uses a GPU",
        "--set instance_type=Standard_NC6s_v3, for example",
    ),
    "registry_name": ("--registry-name", _NO_REGISTRY, "leave it out"),
}


def _flag(name: str, *spellings: str) -> Any:
    option, why, _ = _REASONS[name]
    return typer.Option(option, *spellings, help=f"Refused: {why}.")


Web = Annotated[bool, _flag("web")]
VscodeDebug = Annotated[bool, _flag("vscode_debug")]
PackageModel = Annotated[bool, _flag("package_model", "--with-package")]
LocalEnableGpu = Annotated[bool, _flag("local_enable_gpu")]
RegistryName = Annotated[str | None, _flag("registry_name")]


def refuse(**given: object) -> None:
    """Raises Error Unsupported for the first of the options that is given."""
    for name, value in given.items():
        if value:
            option, why, hint = _REASONS[name]
            raise Error("Unsupported", f"{option}: {why}", target=option, hint=hint)


def share() -> Error:
    """``ml model share``."""
    return Error("Unsupported", f"model share: {_NO_REGISTRY}", hint="ml model download, then create it elsewhere")


def package() -> Error:
    """``ml model package``."""
    why = "models are not packaged into images; they are delivered to instances as they are"
    return Error("Unsupported", f"model package: {why}", hint="deploy the model: ml online-deployment create")
