"""The operations of the workspace, for the OpenAPI document.

Decides what is sent, what is answered and how it is refused below the workspace's path. Must not know shapes.
"""

from __future__ import annotations

from collections.abc import Mapping

from amphitrite.controlplane.api.http.workspace_scope import WORKSPACE
from amphitrite.controlplane.api.openapi_operation import (
    CHANGE,
    DOCUMENT,
    Answer,
    Operation,
    begin,
    begin_write,
    read,
    write,
)
from amphitrite.controlplane.api.openapi_operation import WORKSPACE as ERRORS
from amphitrite.controlplane.api.openapi_parameters import IF_MATCH, IF_NONE_MATCH, NAMES, ORDER

_CONDITIONS = (IF_MATCH, IF_NONE_MATCH)
_ENDPOINTS, _ENDPOINT = f"{WORKSPACE}/onlineEndpoints", f"{WORKSPACE}/onlineEndpoints/{{name}}"
_DEPLOYMENTS = f"{WORKSPACE}/onlineEndpoints/{{endpoint}}/deployments"
_DEPLOYMENT = f"{_DEPLOYMENTS}/{{name}}"
_COMPUTE = f"{WORKSPACE}/computes/{{name}}"
_CODE = f"{WORKSPACE}/codes/{{name}}/versions"
_NAMED = {"name": NAMES["asset"], "version": NAMES["version"]}


def _assets(kind: str, schema: str, container: str) -> dict[str, Operation]:
    """What models and environments have alike."""
    one = f"{WORKSPACE}/{kind}/{{name}}"
    return {
        f"GET {WORKSPACE}/{kind}": read(f"All {kind}.", f"{container}Page"),
        f"GET {one}": read("What the versions have in common.", container),
        f"PUT {one}": Operation(
            "Archive or restore all versions, or change what they have in common.",
            {200: Answer("Changed.", container)},
            DOCUMENT,
            "ContainerBody",
            parameters={"name": NAMES["asset"]},
        ),
        f"GET {one}/versions": read("Its versions.", f"{schema}Page", parameters={"$orderBy": ORDER}),
        f"GET {one}/versions/{{version}}": read("A version.", schema),
        f"PUT {one}/versions/{{version}}": write(
            "Register a version, or change what describes it.",
            schema,
            f"{schema}Body",
            required=schema == "Model",
            parameters=_NAMED,
        ),
    }


OPERATIONS: Mapping[str, Operation] = {
    f"GET {WORKSPACE}": read("The workspace.", "Workspace"),
    f"GET {WORKSPACE}/datastores": read("Its datastores: there is one.", "DatastorePage"),
    f"GET {WORKSPACE}/datastores/{{datastore}}": read("Where models are uploaded to.", "Datastore"),
    f"POST {WORKSPACE}/datastores/{{datastore}}/listSecrets": read(
        "A signature that opens its container for some hours.", "Secrets", errors=DOCUMENT, body="ListSecretsBody"
    ),
    f"GET {WORKSPACE}/computes": read("This machine and the attached clusters.", "ComputePage"),
    f"GET {_COMPUTE}": read("A compute.", "Compute"),
    f"PUT {_COMPUTE}": write(
        "Attach a cluster, or change what is attached.",
        "Compute",
        "ComputeBody",
        errors=(*CHANGE, "KubernetesUnaccessible", "NamespaceNotFound", "AuthorizationFailed"),
        parameters={"name": NAMES["compute"]},
        headers=_CONDITIONS,
    ),
    f"DELETE {_COMPUTE}": Operation(
        "Detach a cluster; the cluster stays as it is.",
        {200: Answer("Detached."), 204: Answer("There was none.")},
        (*ERRORS, "Unsupported", "Conflict"),
    ),
    f"POST {_COMPUTE}/listNodes": read("Its nodes.", "Nodes", errors=(*ERRORS, "Unsupported")),
    f"GET {_COMPUTE}/vmSizes": read("Its instance types.", "Sizes"),
    f"GET {_ENDPOINTS}": read("The endpoints.", "EndpointPage"),
    f"GET {_ENDPOINT}": read("An endpoint.", "Endpoint", "ETag"),
    f"PUT {_ENDPOINT}": begin_write(
        "Create or replace an endpoint.",
        "Endpoint",
        "Preview",
        "EndpointBody",
        required=False,
        parameters={"name": NAMES["resource"]},
        headers=_CONDITIONS,
    ),
    f"GET {_ENDPOINT}/providers/microsoft.insights/metrics": read(
        "Its metrics, in the form of Azure Monitor.", "Metrics"
    ),
    f"GET {_ENDPOINT}/keyUsage": read("When each of its keys, or any token, was last used.", "KeyUsage"),
    f"DELETE {_ENDPOINT}": begin(
        "Delete an endpoint with its deployments.", (*ERRORS, "Conflict", "PreconditionFailed"), headers=_CONDITIONS
    ),
    f"POST {_ENDPOINT}/listKeys": read("Its keys.", "Keys", errors=(*ERRORS, "Conflict", "UserError", "Unsupported")),
    f"POST {_ENDPOINT}/token": read(
        "A token for it, where its authMode is AMLToken.",
        "EndpointToken",
        errors=(*ERRORS, "Unsupported", "UserError"),
    ),
    f"POST {_ENDPOINT}/regenerateKeys": begin(
        "Replace one of its keys.", (*DOCUMENT, "Conflict"), body="RegenerateKeysBody", body_required=True
    ),
    f"GET {_DEPLOYMENTS}": read("Deployments of an endpoint.", "DeploymentPage"),
    f"GET {_DEPLOYMENT}": read("A deployment.", "Deployment", "ETag"),
    f"PUT {_DEPLOYMENT}": begin_write(
        "Create or replace a deployment.",
        "Deployment",
        "Preview",
        "DeploymentBody",
        required=True,
        errors=(*CHANGE, "OutOfQuota", "InvalidDeploymentSpec"),
        parameters={"name": NAMES["resource"]},
        headers=_CONDITIONS,
    ),
    f"DELETE {_DEPLOYMENT}": begin(
        "Delete a deployment.", (*ERRORS, "UserError", "Conflict", "PreconditionFailed"), headers=_CONDITIONS
    ),
    f"POST {_DEPLOYMENT}/getLogs": read("What its instances log.", "Logs", errors=DOCUMENT, body="GetLogsBody"),
    **_assets("models", "Model", "ModelContainer"),
    **_assets("environments", "Environment", "EnvironmentContainer"),
    f"GET {_CODE}": read("Versions of code, or with `hash` those of that content.", "CodePage"),
    f"GET {_CODE}/{{version}}": read("A version of code.", "Code"),
    f"PUT {_CODE}/{{version}}": write(
        "Register uploaded code, or change what describes it.", "Code", "CodeBody", parameters=_NAMED
    ),
    f"POST {_CODE}/{{version}}/startPendingUpload": read(
        "A new address to upload code to.",
        "PendingUpload",
        errors=(*DOCUMENT,),
        body="PendingUploadBody",
    ),
}
