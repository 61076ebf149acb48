"""What a release of Kubernetes says of its objects' fields: the schemas of ``kubernetes-validate``,
each read once.

Decides which schema an object has, and that no field may be there that it does not name. Must not
know our objects.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from kubernetes_validate.utils import schema_contents
from referencing import Registry, Resource


def offences(document: Mapping[str, Any], version: str) -> list[str]:
    """What is wrong with it for Kubernetes ``version`` ("1.35"): where, and why. Raises
    FileNotFoundError for a kind that this release has not."""
    validator = _validator(document["kind"], document["apiVersion"], version)
    return [f"{list(error.path)}: {error.message}" for error in validator.iter_errors(document)]


@cache
def _validator(kind: str, api_version: str, version: str) -> Draft202012Validator:
    """``networking.k8s.io/v1`` is ``networking-v1`` in the files' names."""
    group, slash, number = api_version.rpartition("/")
    api = f"{group.partition('.')[0]}-{number}" if slash else number
    schema = _schema(version, f"{kind.lower()}-{api}")
    registry: Registry[Any] = Resource.from_contents(schema) @ _definitions(version)
    return Draft202012Validator(schema, registry=registry)


@cache
def _definitions(version: str) -> Registry[Any]:
    registry: Registry[Any] = Registry()
    return Resource.from_contents(_schema(version, "_definitions")) @ registry


def _schema(version: str, name: str) -> Any:
    return schema_contents(f"kubernetes-json-schema/v{version}.0-local-strict/{name}.json", version)
