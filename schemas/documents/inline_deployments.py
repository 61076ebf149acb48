"""Azure ML's older single document: an endpoint with ``deployments:`` and ``traffic:`` inline.

Decides how to split it into an endpoint and deployments. Must not validate the parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from amphitrite.schemas.documents.kinds import deployment_kind

Path = tuple[str | int, ...]


def is_legacy(document: object) -> bool:
    """Whether ``document`` is an endpoint with ``deployments``."""
    return isinstance(document, Mapping) and "deployments" in document


def split(document: Mapping[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """(endpoint, deployments) of a normalized ``legacy_endpoint`` document.

    The endpoint keeps its traffic, which can be applied only after the deployments exist.
    """
    endpoint = {key: value for key, value in document.items() if key not in ("deployments", "type")}
    return endpoint, [dict(deployment) for deployment in document["deployments"]]


def inline_deployments(
    document: Mapping[str, Any], texts: Mapping[Path, str]
) -> Iterator[tuple[str, Mapping[str, Any], dict[Path, str]]]:
    """(kind, document, source texts) of each inline deployment, with ``endpoint_name`` added.

    An inline deployment may be any object.
    """
    deployments = document.get("deployments")
    for index, deployment in enumerate(deployments if isinstance(deployments, list) else ()):
        shifted = {path[2:]: text for path, text in texts.items() if path[:2] == ("deployments", index)}
        if isinstance(deployment, Mapping):
            deployment = {"endpoint_name": document.get("name"), **deployment}
        yield deployment_kind(deployment), deployment, shifted
