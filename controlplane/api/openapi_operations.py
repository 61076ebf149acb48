"""Every operation of the REST API, for the OpenAPI document.

Decides the table: those of the workspace and of storage, and here what is left: operations, health, tokens, agents and
pods. Must not know shapes. A route without a line is a fault that a test finds, and so is a line without a route.
"""

from __future__ import annotations

from collections.abc import Mapping

from amphitrite.controlplane.api import openapi_storage, openapi_workspace
from amphitrite.controlplane.api.openapi_operation import GATED, POLL_HEADERS, WORKSPACE, Answer, Operation, read
from amphitrite.controlplane.api.openapi_parameters import NAMES
from amphitrite.schemas.names import PROVIDER

_LOCATION = f"/subscriptions/{{subscription}}/providers/{PROVIDER}/locations/{{location}}"
_FETCH = ("AuthenticationFailed", "AuthorizationFailed", "ResourceNotFound")

OPERATIONS: Mapping[str, Operation] = {
    **openapi_workspace.OPERATIONS,
    **openapi_storage.OPERATIONS,
    f"GET {_LOCATION}/mfeOperationsStatus/{{operation_id}}": read("How far an operation is.", "Operation"),
    f"GET {_LOCATION}/mfeOperationResults/{{operation_id}}": Operation(
        "What an operation led to; its error where it failed.",
        {
            200: Answer("The resource.", "Result"),
            202: Answer("It has not ended.", headers=POLL_HEADERS),
            204: Answer("It has ended and there is nothing to show."),
        },
        (*WORKSPACE, "OutOfQuota", "NamespaceNotFound", "InvalidDeploymentSpec"),
    ),
    "GET /healthz": read("Whether the process is up.", "Health", errors=(), security=None),
    "GET /readyz": read("Whether it can do its work.", "Readiness", errors=(), security=None),
    "GET /metrics": Operation(
        "What the proxies have counted, for Prometheus.",
        {200: Answer("Text of version 0.0.4.", "MetricsText", "text/plain")},
        GATED,
    ),
    "GET /openapi.json": read("This document.", "OpenApi", errors=GATED),
    "GET /metadata/endpoints": read("This server as a cloud, for Azure's clients.", "Clouds", errors=(), security=None),
    "GET /identity/token": read(
        "App Service's identity endpoint, for stock Azure credentials.",
        "IdentityToken",
        errors=("AuthenticationFailed", "BadArgument"),
        security="identity",
        parameters={"resource": {"type": "string", "minLength": 1}},
        required=("resource",),
    ),
    "GET /{tenant}/v2.0/.well-known/openid-configuration": Operation(
        "Where the token authority is.",
        {200: Answer("Its addresses.", "Authority")},
        ("BadArgument",),
        parameters={"tenant": NAMES["tenant"]},
        security=None,
        refusal="OAuthError",
    ),
    "POST /{tenant}/oauth2/v2.0/token": Operation(
        "The client credentials grant.",
        {200: Answer("A token.", "OAuthToken")},
        ("BadArgument", "AuthenticationFailed", "RequestTooLarge"),
        "OAuthForm",
        True,
        "application/x-www-form-urlencoded",
        parameters={"tenant": NAMES["tenant"]},
        security=None,
        refusal="OAuthError",
    ),
    "GET /dataplane/v1/routing-table": Operation(
        "For agents: the routing table as soon as it is newer than theirs.",
        {200: Answer("The table.", "RoutingTable"), 204: Answer("Nothing new.")},
        (*GATED, "BadArgument"),
        security="agent",
    ),
    "GET /dataplane/v1/agents": read("What every agent said last.", "Agents", errors=GATED, security="agent"),
    "PUT /dataplane/v1/agents/{agent_id}": Operation(
        "For agents: what their proxy has in force.",
        {204: Answer("Heard.")},
        (*GATED, "BadArgument", "RequestTooLarge"),
        "AgentReportBody",
        security="agent",
    ),
    "PUT /dataplane/v1/agents/{agent_id}/metrics": Operation(
        "For agents: what their proxy has counted.",
        {204: Answer("Heard.")},
        (*GATED, "BadArgument", "RequestTooLarge"),
        "AgentMetricsBody",
        security="agent",
    ),
    "DELETE /dataplane/v1/agents/{agent_id}": Operation(
        "For agents: the end.", {204: Answer("Heard.")}, GATED, security="agent"
    ),
    "GET /fetch/v1/models/{digest}": read(
        "For pods: the files of a model version.", "FetchedModel", errors=_FETCH, security="grant"
    ),
    "GET /fetch/v1/content/{digest}": Operation(
        "For pods: one file, by a signed address.",
        {200: Answer("The content.", "Binary"), 206: Answer("A part of it.", "Binary", headers=("Content-Range",))},
        (*_FETCH, "InvalidRange"),
        security=None,
    ),
}
