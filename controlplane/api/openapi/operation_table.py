"""Every operation of the REST API: its OpenAPI description, except path and parameters.

Decides the request, the answers and the errors of each operation. A test compares the table with
the routes. Must not know shapes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from amphitrite.controlplane.api.azure.token_authority import TENANT
from amphitrite.controlplane.api.http.workspace_scope import WORKSPACE
from amphitrite.controlplane.api.monitor.autoscale_routes import GROUP, SUBSCRIPTION
from amphitrite.controlplane.api.openapi.field_schemas import value
from amphitrite.controlplane.api.storage.code_uploads import PREFIX
from amphitrite.schemas import documents as schemas
from amphitrite.schemas.names import PROVIDER

Schemas = Mapping[str, Mapping[str, Any]]

#: Errors of any request with a token, of any in the workspace, and of any there with a body.
_GATED = ("AuthenticationFailed",)
_ERRORS = (*_GATED, "ResourceNotFound", "BadArgument")
_DOCUMENT = ("InvalidDocument", "Unsupported", "UserError", "RequestTooLarge", "LimitExceeded")
_POLL = ("Azure-AsyncOperation", "Location", "Retry-After")


@dataclass(frozen=True, slots=True)
class Answer:
    """``schema``: a component's name, "Binary", or None without a body. ``headers``: always
    sent."""

    description: str
    schema: str | None = None
    headers: tuple[str, ...] = ()
    media: str = "application/json"


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation.

    ``errors``: codes of ``schemas.errors``. ``parameters``: schemas that are stricter than the
    route's. ``required``: parameters without which the request is refused. ``headers``: parameters
    that the route does not declare. ``conditional``: with HTTP's preconditions. ``security``: a
    scheme's name; None for public. ``refusal``: the component of an error's body. ``xml``: Azure
    Storage's XML is possible too.
    """

    summary: str
    answers: Mapping[int, Answer]
    errors: tuple[str, ...] = ()
    body: str | None = None
    body_required: bool = False
    body_media: str = "application/json"
    parameters: Schemas = field(default_factory=dict)
    required: tuple[str, ...] = ()
    headers: Schemas = field(default_factory=dict)
    conditional: bool = False
    security: str | None = "token"
    refusal: str = "Error"
    xml: bool = False


def _read(summary: str, schema: str, *errors: str, headers: tuple[str, ...] = (), **more: Any) -> Operation:
    return Operation(summary, {200: Answer("The result.", schema, headers)}, errors, **more)


def _write(summary: str, schema: str, *errors: str, **more: Any) -> Operation:
    answers = {200: Answer("Changed.", schema), 201: Answer("Created.", schema)}
    return Operation(summary, answers, (*errors, "Conflict"), f"{schema}Body", **{"body_required": True, **more})


def _begin_write(summary: str, schema: str, *errors: str, **more: Any) -> Operation:
    """The resource and the headers of a long-running operation. With ``dryRun``, a preview."""
    changed = Answer("Changed. With dryRun: a preview; nothing is changed.", f"{schema}OrPreview")
    answers = {200: changed, 201: Answer("Created.", schema, ("ETag", *_POLL))}
    written = _write(summary, schema, *errors, parameters=_RESOURCE, conditional=True, **more)
    return replace(written, answers=answers)


def _begin(summary: str, *errors: str, **more: Any) -> Operation:
    answers = {202: Answer("Accepted.", headers=_POLL), 204: Answer("There was nothing to do.")}
    return Operation(summary, answers, (*errors, "Conflict"), **more)


def _report(summary: str, body: str | None = None) -> Operation:
    return Operation(summary, {204: Answer("Recorded.")}, ("BadArgument", "RequestTooLarge") if body else (), body)


def _named(definition: str) -> dict[str, Any]:
    """The schema for names of new resources. A request that only reads may use any text."""
    known = {name: one for kind in schemas.KINDS for name, one in schemas.load(kind)["$defs"].items()}
    return value({"$ref": f"#/$defs/{definition}"}, {"$defs": known}, sent=True)


_RESOURCE = {"name": _named("name")}
_COMPUTE = {"name": _named("computeName")}
_ASSET = {"name": _named("assetName")}
_VERSION = {**_ASSET, "version": _named("version")}
_TENANT = {"tenant": {"type": "string", "enum": [TENANT]}}
#: Case and additional spaces are ignored.
_ORDER = {
    "type": "string",
    "pattern": r"^\s*[cC][rR][eE][aA][tT][eE][dD][tT][iI][mM][eE]\s+([dD][eE]|[aA])[sS][cC]\s*$",
}


def _assets(kind: str, schema: str) -> dict[str, Operation]:
    """The operations that models and environments share."""
    one, shared, model = f"/{kind}/{{name}}", f"{schema}Container", schema == "Model"
    archive = "Archive or restore all versions, or change their shared properties."
    register = "Register a version, or change its description."
    changed = {200: Answer("Changed.", shared)}
    deleted = {200: Answer("Deleted."), 204: Answer("There was none.")}
    return {
        f"GET /{kind}": _read(f"All {kind}.", f"{shared}Page"),
        f"GET {one}": _read("The shared properties of all versions.", shared),
        f"PUT {one}": Operation(archive, changed, body="ContainerBody", parameters=_ASSET),
        f"GET {one}/versions": _read("Its versions.", f"{schema}Page", parameters={"$orderBy": _ORDER}),
        f"GET {one}/versions/{{version}}": _read("A version.", schema),
        f"DELETE {one}": Operation("Delete all versions. None of them may be in use.", deleted, ("Conflict",)),
        f"DELETE {one}/versions/{{version}}": Operation("Delete a version that is not in use.", deleted, ("Conflict",)),
        f"PUT {one}/versions/{{version}}": _write(register, schema, parameters=_VERSION, body_required=model),
    }


_WORKSPACE: Mapping[str, Operation] = {
    "GET": _read("The workspace.", "Workspace"),
    "GET /datastores": _read("Its datastores: there is one.", "DatastorePage"),
    "GET /datastores/{datastore}": _read("Where models are uploaded to.", "Datastore"),
    "POST /datastores/{datastore}/listSecrets": _read(
        "A signature that opens its container for some hours.", "Secrets", body="ListSecretsBody"
    ),
    **_assets("models", "Model"),
    **_assets("environments", "Environment"),
    "GET /codes/{name}/versions": _read("Versions of code, or with `hash` those of that content.", "CodePage"),
    "GET /codes/{name}/versions/{version}": _read("A version of code.", "Code"),
    "PUT /codes/{name}/versions/{version}": _write(
        "Register uploaded code, or change its description.", "Code", parameters=_VERSION
    ),
    "POST /codes/{name}/versions/{version}/startPendingUpload": _read(
        "A new address to upload code to.", "PendingUpload", body="PendingUploadBody"
    ),
}
_UNUSABLE = ("KubernetesUnaccessible", "NamespaceNotFound", "AuthorizationFailed")
_DETACHED = {200: Answer("Detached."), 204: Answer("There is no such compute.")}
_COMPUTES: Mapping[str, Operation] = {
    "GET": _read("This machine and the attached clusters.", "ComputePage"),
    "GET /{name}": _read("A compute.", "Compute", headers=("ETag",)),
    "PUT /{name}": _write(
        "Attach a cluster, or change an attached one.", "Compute", *_UNUSABLE, parameters=_COMPUTE, conditional=True
    ),
    "DELETE /{name}": Operation(
        "Detach a cluster. The cluster is not changed.", _DETACHED, ("Unsupported", "Conflict"), conditional=True
    ),
    "POST /{name}/listNodes": _read("Its nodes.", "Nodes", "Unsupported"),
    "GET /{name}/vmSizes": _read("Its instance types.", "Sizes"),
}
#: Who changes something, and why: percent-encoded UTF-8. See ``http.authors``.
_BY = {
    "Amphitrite-Author": {"type": "string", "maxLength": 255},
    "Amphitrite-Reason": {"type": "string", "maxLength": 1000},
}


def _back(summary: str, schema: str, *errors: str) -> Operation:
    """A change to what an earlier revision had."""
    changed = {200: Answer("Changed.", schema, ("ETag", *_POLL))}
    refusals = (*errors, "Conflict", "UserError", "BadArgument")
    return Operation(summary, changed, refusals, "RevisionBody", conditional=True, headers=_BY)


def _paused(summary: str) -> Operation:
    changed = {200: Answer("Changed, or it was so already.", "Deployment", ("ETag", *_POLL))}
    return Operation(summary, changed, ("Conflict",), conditional=True, headers=_BY)


_ENDPOINTS: Mapping[str, Operation] = {
    "GET": _read("The endpoints.", "EndpointPage"),
    "GET /{name}": _read("An endpoint.", "Endpoint", headers=("ETag",)),
    "PUT /{name}": _begin_write("Create or replace an endpoint.", "Endpoint", body_required=False, headers=_BY),
    "DELETE /{name}": _begin("Delete an endpoint with its deployments.", conditional=True),
    "POST /{name}/listKeys": _read("Its keys.", "Keys", "Conflict", "UserError", "Unsupported"),
    "POST /{name}/token": _read(
        "A token for it, where its authMode is AMLToken.", "EndpointToken", "Unsupported", "UserError"
    ),
    "POST /{name}/regenerateKeys": _begin(
        "Replace one of its keys. Revokes all tokens of an endpoint with aml_token.",
        body="RegenerateKeysBody",
        body_required=True,
    ),
    "GET /{endpoint}/trafficHistory": _read("The changes of its traffic, newest first.", "TrafficHistory"),
    "POST /{endpoint}/restoreTraffic": _back(
        "Bring back the traffic of a revision; without one, that before the last change.", "Endpoint"
    ),
    "GET /{name}/keyUsage": _read("When each of its keys, or any token, was last used.", "KeyUsage"),
    "GET /{name}/providers/microsoft.insights/metrics": _read("Its metrics, in the form of Azure Monitor.", "Metrics"),
}
_STARTED = {201: Answer("Started.", "Rollout")}
_ROLLOUT_REFUSED = ("UserError", "Conflict", "BadArgument")


def _asked(summary: str, body: str | None = None) -> Operation:
    return replace(_read(summary, "Rollout", "Conflict", body=body), headers=_BY)


_ROLLOUTS: Mapping[str, Operation] = {
    "GET": _read("Its rollouts that are kept, newest first.", "Rollouts"),
    "POST": Operation(
        "Begin a rollout by objective.", _STARTED, _ROLLOUT_REFUSED, "RolloutBody", body_required=True, headers=_BY
    ),
    "GET /{number}": _read("A rollout.", "Rollout"),
    "POST /{number}/pause": _asked("Stay at this step. It is still rolled back if it must be."),
    "POST /{number}/resume": _asked("Go on."),
    "POST /{number}/promote": _asked("Go to the next step now; with full to the end.", "PromoteBody"),
    "POST /{number}/abort": _asked("Bring back the traffic from before, and end."),
}
_CANNOT_RUN = ("OutOfQuota", "InvalidDeploymentSpec")
_DEPLOYMENTS: Mapping[str, Operation] = {
    "GET": _read("Deployments of an endpoint.", "DeploymentPage"),
    "GET /{name}": _read("A deployment.", "Deployment", headers=("ETag",)),
    "PUT /{name}": _begin_write("Create or replace a deployment.", "Deployment", *_CANNOT_RUN, headers=_BY),
    "DELETE /{name}": _begin("Delete a deployment.", "UserError", conditional=True, headers=_BY),
    "GET /{name}/history": _read("Its revisions, newest first.", "DeploymentHistory"),
    "GET /{name}/scaleHistory": _read("The changes of its number of instances, newest first.", "ScaleHistory"),
    "POST /{name}/rollback": _back(
        "Bring back the document of a revision; without one, the newest that differs.", "Deployment", *_CANNOT_RUN
    ),
    "GET /{name}/providers/microsoft.insights/metrics": _read("Its metrics, in the form of Azure Monitor.", "Metrics"),
    "POST /{name}/pause": _paused("End its instances; requests are answered 503 until it is resumed."),
    "POST /{name}/resume": _paused("Start its instances again; requests are held until one is ready."),
    "POST /{name}/getLogs": _read("The logs of its instances.", "Logs", body="GetLogsBody"),
}
_NO_SETTING = {200: Answer("Deleted."), 204: Answer("There was none.")}
_SETTINGS: Mapping[str, Operation] = {
    "GET": _read("The autoscale settings.", "AutoscaleSettingPage"),
    "GET /{name}": _read("An autoscale setting, and what it comes to now.", "AutoscaleSetting", headers=("ETag",)),
    "PUT /{name}": _write("Create or replace an autoscale setting.", "AutoscaleSetting", conditional=True),
    "PATCH /{name}": Operation(
        "Replace the tags and those properties that are sent.",
        {200: Answer("Changed.", "AutoscaleSetting", ("ETag",))},
        ("Conflict",),
        "AutoscaleSettingBody",
        conditional=True,
    ),
    "DELETE /{name}": Operation(
        "Delete an autoscale setting. The number of instances stays.", _NO_SETTING, conditional=True
    ),
}
_OPERATIONS: Mapping[str, Operation] = {
    "GET /mfeOperationsStatus/{operation_id}": _read("The progress of an operation.", "Operation"),
    "GET /mfeOperationResults/{operation_id}": Operation(
        "The result of an operation, or its error.",
        {
            200: Answer("The resource.", "Result"),
            202: Answer("It has not ended.", headers=_POLL),
            204: Answer("It has ended without a resource."),
        },
        ("OutOfQuota", "NamespaceNotFound", "InvalidDeploymentSpec"),
    ),
}
_PART = Answer("A part of it.", "Binary", ("Content-Range",))
_OPEN: Mapping[str, Operation] = {
    "GET /healthz": _read("Whether the process runs.", "Health"),
    "GET /readyz": _read("Whether it is ready.", "Readiness"),
    "GET /metadata/endpoints": _read("This server as a cloud, for Azure's clients.", "Clouds"),
    "GET /{tenant}/v2.0/.well-known/openid-configuration": _read(
        "The configuration of the token authority.",
        "Authority",
        "BadArgument",
        parameters=_TENANT,
        refusal="OAuthError",
    ),
    "POST /{tenant}/oauth2/v2.0/token": Operation(
        "The client credentials grant.",
        {200: Answer("A token.", "OAuthToken")},
        (*_GATED, "BadArgument", "RequestTooLarge"),
        body="OAuthForm",
        body_required=True,
        body_media="application/x-www-form-urlencoded",
        parameters=_TENANT,
        refusal="OAuthError",
    ),
    "GET /fetch/v1/content/{digest}": Operation(
        "For pods: one file, by a signed address.",
        {200: Answer("The content.", "Binary"), 206: _PART},
        (*_GATED, "AuthorizationFailed", "ResourceNotFound", "InvalidRange"),
    ),
}
_SERVER: Mapping[str, Operation] = {
    "GET /metrics": Operation(
        "The counters of all proxies, for Prometheus.",
        {200: Answer("Text of version 0.0.4.", "MetricsText", media="text/plain")},
    ),
    "GET /openapi.json": _read("This document.", "OpenApi"),
    "GET /maintenance/v1/storage": _read("What takes space, in bytes.", "Storage", "RuntimeUnavailable"),
    "POST /maintenance/v1/prune": _read(
        "Delete what nobody needs. With dryRun: say what that is.", "Pruned", "BadArgument", "RuntimeUnavailable"
    ),
}
_TABLE = {200: Answer("The table.", "RoutingTable"), 204: Answer("Nothing new.")}
_AGENTS: Mapping[str, Operation] = {
    "GET /routing-table": Operation(
        "For agents: the routing table as soon as it is newer than theirs.", _TABLE, ("BadArgument",)
    ),
    "GET /agents": _read("The newest report of every agent.", "Agents"),
    "PUT /agents/{agent_id}": _report("For agents: the state of their proxy.", "AgentReportBody"),
    "PUT /agents/{agent_id}/metrics": _report("For agents: the counters of their proxy.", "AgentMetricsBody"),
    "PUT /agents/{agent_id}/samples": _report(
        "For agents: the demand on scaled deployments since the last flush.", "AgentSamplesBody"
    ),
    "DELETE /agents/{agent_id}": _report("For agents: sign off."),
}
_IDENTITY = _read(
    "App Service's identity endpoint, for stock Azure credentials.",
    "IdentityToken",
    "BadArgument",
    parameters={"resource": {"type": "string", "minLength": 1}},
    required=("resource",),
)
_FETCH = _read("For pods: the files of a model version.", "FetchedModel", "AuthorizationFailed", "ResourceNotFound")

_BLOB = ("ETag", "Last-Modified", "Accept-Ranges", "Content-Length", "x-ms-blob-type")
_CONTENT = {
    200: Answer("The content.", "Binary", _BLOB),
    206: Answer("A part of it.", "Binary", (*_BLOB, "Content-Range")),
}
_RANGE = {"type": "string", "pattern": r"^bytes=[0-9]{1,18}-([0-9]{1,18})?$"}
_MD5 = {"type": "string", "pattern": "^[A-Za-z0-9+/]{21}[AQgw]==$"}
#: Paths of blobs to read, and of blobs to write, which contain only characters that XML allows.
_PATH = {"type": "string", "minLength": 1, "maxLength": 1024, "pattern": r"^[^\u0000]+$"}
_NEW_PATH = {**_PATH, "pattern": r"^[^\u0000-\u001f\u007f\ufffe\uffff]+$"}
_NOT_WRITTEN = (
    *("BlobNotFound", "BlobAlreadyExists", "Conflict", "Md5Mismatch", "InvalidMd5", "RequestTooLarge"),
    *("LimitExceeded", "InvalidBlockId", "InvalidBlockList", "BlockListTooLong", "BlockCountExceedsLimit"),
    *("InvalidXmlDocument", "InvalidMetadata", "MetadataTooLarge", "ConditionHeadersNotSupported"),
)
_VERBS = {"enum": ["", "block", "blocklist", "metadata"], "default": ""}
_BLOBS: Mapping[str, Operation] = {
    "GET": Operation(
        "List Blobs of Azure Storage.",
        {200: Answer("The blobs.", "BlobList", media="application/xml")},
        parameters={"restype": {"const": "container"}, "comp": {"const": "list"}},
        required=("restype", "comp"),
    ),
    "HEAD /{path}": Operation(
        "Get Blob Properties.",
        {200: Answer("Its properties.", headers=_BLOB)},
        ("BlobNotFound",),
        parameters={"path": _PATH},
    ),
    "GET /{path}": Operation(
        "Get Blob.",
        _CONTENT,
        ("BlobNotFound", "InvalidRange", "PreconditionFailed"),
        parameters={"path": _PATH, "comp": {"const": ""}},
        headers={"x-ms-range": _RANGE, "If-Match": {"type": "string"}},
    ),
    "PUT /{path}": Operation(
        "Put Blob; with comp: Put Block (which needs blockid), Put Block List (XML), Set Blob Metadata.",
        {200: Answer("The metadata is set.", headers=("ETag",)), 201: Answer("Written.")},
        _NOT_WRITTEN,
        body="Binary",
        body_media="application/octet-stream",
        parameters={"path": _NEW_PATH, "comp": _VERBS, "blockid": {"type": "string", "default": ""}},
        headers={"x-ms-blob-type": {"const": "BlockBlob"}, "If-None-Match": {"const": "*"}, "Content-MD5": _MD5},
    ),
}
_STORAGE = (
    *(*_GATED, "AuthorizationFailed", "ResourceNotFound", "BadArgument", "Unsupported"),
    *("InvalidResourceName", "InvalidHeaderValue"),
)
_LOCATION = f"/subscriptions/{{subscription}}/providers/{PROVIDER}/locations/{{location}}"


def _below(path: str, rows: Mapping[str, Operation], errors: tuple[str, ...], **shared: Any) -> dict[str, Operation]:
    """Rows by method and path. ``errors`` and ``shared`` apply to every operation below
    ``path``."""
    made = {}
    for name, one in rows.items():
        documents = _DOCUMENT if one.body and errors is _ERRORS else ()
        conditions = ("PreconditionFailed",) if one.conditional else ()
        codes = dict.fromkeys((*errors, *documents, *one.errors, *conditions))
        method, _, rest = name.partition(" ")
        made[f"{method} {path}{rest}"] = replace(one, errors=tuple(codes), **shared)
    return made


_DESCRIBED = Operation(
    "The OpenAPI document of a deployment's scoring address: of the one that the header names, else of the one with "
    "most of the traffic.",
    {200: Answer("Swagger 2.0, or OpenAPI 3.0 for version=3.", "OpenApi")},
    ("ResourceNotFound", "BadArgument"),
)

OPERATIONS: Mapping[str, Operation] = {
    **_below(WORKSPACE, _WORKSPACE, _ERRORS),
    **_below(f"{WORKSPACE}/computes", _COMPUTES, _ERRORS),
    **_below(f"{WORKSPACE}/onlineEndpoints", _ENDPOINTS, _ERRORS),
    **_below(f"{WORKSPACE}/onlineEndpoints/{{endpoint}}/deployments", _DEPLOYMENTS, _ERRORS),
    **_below(f"{WORKSPACE}/onlineEndpoints/{{endpoint}}/rollouts", _ROLLOUTS, _ERRORS),
    **_below(GROUP, _SETTINGS, _ERRORS),
    **_below(SUBSCRIPTION, {"GET": _SETTINGS["GET"]}, _ERRORS),
    **_below(_LOCATION, _OPERATIONS, _ERRORS),
    # A container accepts the token, or an address with a signature.
    **_below("/storage/{account}/{container}", _BLOBS, _STORAGE, xml=True),
    **_below(f"/storage/{{account}}/{PREFIX}{{upload}}", _BLOBS, _STORAGE, xml=True),
    **_below("", _OPEN, (), security=None),
    **_below("", _SERVER, _GATED),
    **_below("/dataplane/v1", _AGENTS, _GATED, security="agent"),
    **_below("", {"GET /endpoints/{name}/swagger.json": _DESCRIBED}, _GATED, security="score"),
    **_below("", {"GET /identity/token": _IDENTITY}, _GATED, security="identity"),
    **_below("", {"GET /fetch/v1/models/{digest}": _FETCH}, _GATED, security="grant"),
}
