"""What the OpenAPI document says of one operation, as a value.

Decides the words of the tables (``openapi_workspace``, ``openapi_storage``, ``openapi_operations``). Must not know any
operation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

#: Refusals of any request that needs a token, of any in the workspace, and of any with a document.
GATED = ("AuthenticationFailed",)
WORKSPACE = (*GATED, "ResourceNotFound", "BadArgument")
DOCUMENT = (*WORKSPACE, "InvalidDocument", "Unsupported", "UserError", "RequestTooLarge", "LimitExceeded")
CHANGE = (*DOCUMENT, "Conflict", "PreconditionFailed")

STATE_HEADERS = ("ETag", "Azure-AsyncOperation", "Location", "Retry-After")
POLL_HEADERS = ("Azure-AsyncOperation", "Location", "Retry-After")


@dataclass(frozen=True, slots=True)
class Answer:
    """``schema``: a component's name, "Binary", or None where there is no body. ``headers``: those that are always
    there."""

    description: str
    schema: str | None = None
    media: str = "application/json"
    headers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Operation:
    """``errors``: codes of ``schemas.errors``. ``parameters``: schemas of those that say more than the route does, and
    ``required`` those without which it is refused. ``headers``: parameters that the route does not declare.
    ``security``: a scheme's name, None for open to everybody. ``xml``: refusals are XML where the client asks for it,
    as Azure Storage's. ``refusal``: the component that refusals have instead of Azure Resource Manager's."""

    summary: str
    answers: Mapping[int, Answer]
    errors: tuple[str, ...]
    body: str | None = None
    body_required: bool = False
    body_media: str = "application/json"
    parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    headers: tuple[Mapping[str, Any], ...] = ()
    security: str | None = "token"
    xml: bool = False
    refusal: str = "Error"


def read(summary: str, schema: str, *headers: str, errors: tuple[str, ...] = WORKSPACE, **more: Any) -> Operation:
    """200 with a body."""
    return Operation(summary, {200: Answer("What was asked for.", schema, headers=headers)}, errors, **more)


def write(summary: str, schema: str, body: str, *, required: bool = True, **more: Any) -> Operation:
    """200 or 201 with the resource."""
    answers = {200: Answer("Changed.", schema), 201: Answer("Created.", schema)}
    return Operation(summary, answers, more.pop("errors", CHANGE), body, required, **more)


def begin_write(summary: str, schema: str, preview: str, body: str, *, required: bool, **more: Any) -> Operation:
    """200 or 201 with the resource and the headers of a long-running operation; with ``dryRun`` what would happen."""
    either = f"{schema}Or{preview}"
    answers = {
        200: Answer("Changed. With dryRun: what would be done; nothing is.", either),
        201: Answer("Created.", schema, headers=STATE_HEADERS),
    }
    return Operation(summary, answers, more.pop("errors", CHANGE), body, required, **more)


def begin(summary: str, errors: tuple[str, ...], **more: Any) -> Operation:
    """202 with the headers of a long-running operation, 204 where there is nothing to do."""
    answers = {202: Answer("Begun.", headers=POLL_HEADERS), 204: Answer("There was nothing to do.")}
    return Operation(summary, answers, errors, **more)
