"""What the value of an option names, for completion: choices, or resources of the control plane.

Decides which names are offered for which option of which group. Must not know shells, or how names
are looked up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from amphitrite.cli.terminal.options import FORMATS
from amphitrite.schemas.errors import CODES

if TYPE_CHECKING:
    from amphitrite.cli.session.quick_names import Named, QuickNames

#: (group, parameter; "" for any group) -> its values.
CHOICES: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("", "output"): FORMATS,
    ("explain", "code"): tuple(sorted(CODES)),
    ("completion", "shell"): ("bash", "zsh", "fish"),
    ("", "label"): ("latest",),
    ("", "datastore"): ("workspaceblobstore",),
    ("online-endpoint", "auth_mode"): ("key", "aml_token", "aad_token"),
    ("online-endpoint", "key_type"): ("primary", "secondary"),
    ("online-deployment", "container"): ("inference-server", "storage-initializer"),
    ("model", "type_"): ("triton_model", "custom_model", "mlflow_model"),
    ("environment", "os_type"): ("linux",),
    ("compute", "type_"): ("kubernetes", "local"),
    ("server", "runtime"): ("local", "kubernetes"),
    ("server", "shell"): ("sh", "json"),
    ("server", "authentication"): ("managed-identity", "environment"),
    ("server", "discovery"): ("mfe", "metadata"),
}
#: Aliases of groups.
_GROUPS = {"endpoint": "online-endpoint", "deployment": "online-deployment"}
#: Verbs whose ``--name`` is a new one.
_NEW = ("create", "attach")


def values(path: list[str], parameter: str, chosen: Mapping[str, str], current: str, names: QuickNames) -> list[Named]:
    """The values of an option. ``path``: the group and the verb. ``chosen``: parameter -> the value
    that the line has for it. ``current``: what is typed of the value so far.
    """
    from amphitrite.cli.session.quick_names import Named

    group = _GROUPS.get(path[0], path[0]) if path else ""
    choices = CHOICES.get((group, parameter)) or CHOICES.get(("", parameter))
    if choices is not None:
        return [Named(choice) for choice in choices]
    if parameter == "set_":
        return _fields(group, chosen, current, names)
    endpoint = chosen.get("name" if group == "online-endpoint" else "endpoint_name")
    if parameter in ("traffic", "mirror_traffic"):
        return [Named(f"{one.name}=", one.meaning) for one in names.deployments(endpoint)] if endpoint else []
    if parameter == "name" and path[-1] in _NEW:
        return []
    return _resources(group, parameter, chosen, endpoint, names)


def _resources(
    group: str, parameter: str, chosen: Mapping[str, str], endpoint: str | None, names: QuickNames
) -> list[Named]:
    if parameter == "endpoint_name" or (parameter, group) == ("name", "online-endpoint"):
        return names.endpoints()
    if parameter == "deployment_name" or (parameter, group) == ("name", "online-deployment"):
        return names.deployments(endpoint) if endpoint else []
    if parameter == "instance_type":
        return names.instance_types(endpoint)
    name = chosen.get("name")
    match (group, parameter):
        case ("model", "name"):
            return names.models()
        case ("model", "version"):
            return names.model_versions(name) if name else []
        case ("environment", "name"):
            return names.environments()
        case ("environment", "version"):
            return names.environment_versions(name) if name else []
        case ("compute", "name"):
            return names.computes()
    return []


def _fields(group: str, chosen: Mapping[str, str], current: str, names: QuickNames) -> list[Named]:
    """Values of ``--set FIELD=``, for the fields of a deployment that name something."""
    field, equals, value = current.partition("=")
    if group != "online-deployment" or not equals:
        return []
    if field == "instance_type":
        found = names.instance_types(chosen.get("endpoint_name"))
    elif field in ("model", "environment"):
        found = _references(field, value, names)
    else:
        return []
    return [one._replace(name=f"{field}={one.name}") for one in found]


def _references(kind: str, value: str, names: QuickNames) -> list[Named]:
    """``azureml:NAME:`` and, once that is typed, ``azureml:NAME:VERSION``."""
    asset, colon, _ = value.removeprefix("azureml:").partition(":")
    if value.startswith("azureml:") and colon:
        found = names.model_versions(asset) if kind == "model" else names.environment_versions(asset)
        return [one._replace(name=f"azureml:{asset}:{one.name}") for one in found]
    found = names.models() if kind == "model" else names.environments()
    return [one._replace(name=f"azureml:{one.name}:") for one in found]
