"""Conversion between documents (snake_case) and Azure Resource Manager's wire bodies (camelCase).

Decides what is public: ``*_to_wire``, ``*_from_wire``, and ``show_*`` for the output of ``show``.
Everything is pure, and must not know files, the network or the store.

``*_to_wire`` takes a valid, normalized document. ``*_from_wire`` takes any JSON value and drops
read-only properties, so that the response of a GET can be PUT again. It raises Error BadArgument
with all violations, whose paths are those of the wire body. The caller must still validate its
result with ``amphitrite.schemas.documents.validate``. Outside contract: Azure's REST API for
Machine Learning services, version 2023-04-01-preview.
"""

from __future__ import annotations

from amphitrite.schemas.wire.assets import (
    code_from_wire,
    code_to_wire,
    container_from_wire,
    environment_from_wire,
    environment_to_wire,
    model_flags,
    model_from_wire,
    model_to_wire,
)
from amphitrite.schemas.wire.computes import (
    compute_from_wire,
    compute_to_wire,
    listed_types,
    show_compute,
    show_node,
    show_size,
)
from amphitrite.schemas.wire.deployments import Resolve, deployment_from_wire, deployment_to_wire
from amphitrite.schemas.wire.display import (
    show_deployment,
    show_endpoint,
    show_environment,
    show_environment_container,
    show_model,
    show_model_container,
)
from amphitrite.schemas.wire.endpoints import endpoint_from_wire, endpoint_to_wire

__all__ = [
    "Resolve",
    "code_from_wire",
    "code_to_wire",
    "compute_from_wire",
    "compute_to_wire",
    "container_from_wire",
    "deployment_from_wire",
    "deployment_to_wire",
    "endpoint_from_wire",
    "endpoint_to_wire",
    "environment_from_wire",
    "environment_to_wire",
    "listed_types",
    "model_flags",
    "model_from_wire",
    "model_to_wire",
    "show_compute",
    "show_deployment",
    "show_endpoint",
    "show_environment",
    "show_environment_container",
    "show_model",
    "show_model_container",
    "show_node",
    "show_size",
]
