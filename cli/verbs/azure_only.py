"""Options and verbs of ``az ml`` that are not supported.

Decides which ones are refused, the reason, and the alternative. They are never accepted and
ignored. Must not know any verb.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from amphitrite.schemas.errors import Error

_NO_PACKAGE = "models are not packaged into images; instances receive the model files directly"
_NO_REGISTRY = "there are no registries; models and environments belong to the workspace"
#: Parameter -> (option, reason, hint).
_REASONS: Mapping[str, tuple[str, str, str]] = {
    "web": ("--web", "there is no web page for a resource", "remove the option; `show` prints the same data"),
    "vscode_debug": (
        "--vscode-debug",
        "instances run Triton; there is no Python process for a debugger",
        "use `ml online-deployment get-logs --follow` to watch an instance",
    ),
    "package_model": (
        "--package-model",
        _NO_PACKAGE,
        "remove the option",
    ),
    "local_enable_gpu": (
        "--local-enable-gpu",
        "the instance type decides whether an instance has a GPU",
        "set the instance type, for example --set instance_type=Standard_NC6s_v3",
    ),
    "registry_name": ("--registry-name", _NO_REGISTRY, "remove the option"),
}


def _flag(name: str, *spellings: str) -> Any:
    option, why, _ = _REASONS[name]
    return typer.Option(option, *spellings, hidden=True, help=f"Not supported: {why}.")


Web = Annotated[bool, _flag("web")]
VscodeDebug = Annotated[bool, _flag("vscode_debug")]
PackageModel = Annotated[bool, _flag("package_model", "--with-package")]
LocalEnableGpu = Annotated[bool, _flag("local_enable_gpu")]
RegistryName = Annotated[str | None, _flag("registry_name")]


def refuse(**options: object) -> None:
    """Raises Error Unsupported for the first of the options that is set."""
    for name, value in options.items():
        if value:
            option, why, hint = _REASONS[name]
            raise Error("Unsupported", f"{option}: {why}", target=option, hint=hint)


def share() -> Error:
    """The error of ``ml model share`` and ``ml environment share``."""
    return Error(
        "Unsupported",
        f"model share: {_NO_REGISTRY}",
        hint="use `ml model download`, then `ml model create` in the other workspace",
    )


def package() -> Error:
    """The error of ``ml model package``."""
    hint = "deploy the model with `ml online-deployment create`"
    return Error("Unsupported", f"model package: {_NO_PACKAGE}", hint=hint)
