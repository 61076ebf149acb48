"""Answers that are no resources, in the OpenAPI document: errors, operations, lists of facts, tokens, agents.

Decides their shapes. Must not know documents, requests or paths.
"""

from __future__ import annotations

from amphitrite.controlplane.api.openapi_shapes import ANY, COUNT, TEXT, TEXTS, TIME, closed, listed, nullable, ref
from amphitrite.controlplane.api.openapi_wire import Schema
from amphitrite.schemas.errors import CODES


def _error() -> dict[str, Schema]:
    info = listed(closed({"type": TEXT, "info": ANY}))
    detail = closed({"code": TEXT, "message": TEXT, "target": TEXT, "additionalInfo": info})
    body = closed(
        {"code": {"enum": sorted(CODES)}, "message": {"type": "string", "minLength": 1}},
        {"target": TEXT, "details": listed(detail), "additionalInfo": info},
    )
    storage: Schema = {"type": "object", "xml": {"name": "Error"}, "properties": {"Code": TEXT, "Message": TEXT}}
    return {"ErrorBody": body, "Error": closed({"error": ref("ErrorBody")}), "StorageError": storage}


def _operation() -> Schema:
    phase = closed({"name": TEXT, "message": TEXT, "startTime": TIME})
    verbs = ["create", "update", "delete", "regenerateKeys"]
    return closed(
        {
            "id": TEXT,
            "name": TEXT,
            "status": {"enum": ["InProgress", "Succeeded", "Failed", "Canceled"]},
            "startTime": TIME,
            "percentComplete": {"type": "integer", "minimum": 0, "maximum": 100},
            "resourceId": TEXT,
            "properties": closed({"verb": {"enum": verbs}, "phases": listed(phase)}),
        },
        {"endTime": TIME, "error": ref("ErrorBody")},
    )


def _nodes() -> dict[str, Schema]:
    gpus = closed({"total": {"type": "integer"}, "used": {"type": "integer"}, "free": {"type": "integer"}})
    resources = {"type": "object", "additionalProperties": closed({"total": TEXT, "free": TEXT})}
    states = {"enum": ["idle", "running", "unusable"]}
    node = closed({"nodeId": TEXT, "nodeState": states, "gpus": gpus, "resources": resources})
    size = closed(
        {
            "name": TEXT,
            "vCPUs": {"type": "number"},
            "memoryGB": {"type": "number"},
            "gpus": COUNT,
            "gpuClass": nullable(TEXT),
            "origin": {"enum": ["azure", "compute"]},
        },
        {"requests": TEXTS, "limits": TEXTS},
    )
    return {"Nodes": closed({"nodes": listed(node), "gpus": gpus}), "Sizes": closed({"value": listed(size)})}


def _dataplane() -> dict[str, Schema]:
    agent = closed(
        {
            "id": TEXT,
            "live": {"type": "boolean"},
            "seen_at": {"type": "number"},
            "acknowledged_version": COUNT,
            "drained_version": COUNT,
            "rejected_version": nullable(COUNT),
            "error": nullable(TEXT),
            "envoy": closed({"pid": nullable(COUNT), "version": nullable(TEXT)}),
        }
    )
    file = closed({"path": TEXT, "digest": TEXT, "size": COUNT, "url": TEXT})
    fetched = {
        "digest": TEXT,
        "bytes": COUNT,
        "files": listed(file),
        "empty_directories": listed(TEXT),
        "in_use": listed(TEXT),
    }
    return {"Agents": closed({"value": listed(agent)}), "FetchedModel": closed(fetched), "RoutingTable": ANY}


def _metrics() -> dict[str, Schema]:
    name = closed({"value": TEXT, "localizedValue": TEXT})
    point = closed({"timeStamp": TIME}, {"average": {"type": "number"}, "total": {"type": "number"}})
    series = closed({"metadatavalues": listed(closed({"name": name, "value": TEXT})), "data": listed(point)})
    metric = {
        **{key: TEXT for key in ("id", "type", "displayDescription", "unit", "errorCode")},
        "name": name,
        "timeseries": listed(series),
    }
    window = {key: TEXT for key in ("timespan", "interval", "namespace", "resourceregion")}
    answer = closed({"cost": COUNT, **window, "value": listed(closed(metric))})
    use = closed({"key": {"enum": ["primary", "secondary", "token"]}, "lastUsedTime": {"type": ["string", "null"]}})
    return {"Metrics": answer, "MetricsText": TEXT, "KeyUsage": closed({"value": listed(use)})}


def _uploads() -> dict[str, Schema]:
    credential = closed({"credentialType": {"const": "SAS"}, "sasUri": TEXT})
    reference = closed({"blobUri": TEXT, "storageAccountArmId": TEXT, "credential": credential})
    upload = {"pendingUploadType": {"const": "TemporaryBlobReference"}, "pendingUploadId": TEXT}
    listing = {
        "type": "object",
        "xml": {"name": "EnumerationResults"},
        "properties": {"Prefix": TEXT, "NextMarker": TEXT, "Blobs": ANY},
    }
    return {
        "PendingUpload": closed({**upload, "blobReferenceForConsumption": reference}),
        "BlobList": listing,
    }


def _clients() -> dict[str, Schema]:
    """What stock Azure credentials are told."""
    texts = listed(TEXT)
    authority = {
        **{name: TEXT for name in ("issuer", "authorization_endpoint", "token_endpoint")},
        **{f"{name}_supported": texts for name in ("token_endpoint_auth_methods", "grant_types", "response_types")},
    }
    cloud = {
        "authentication": closed({"loginEndpoint": TEXT, "audiences": texts}),
        "suffixes": closed({"storage": TEXT}),
        **{name: TEXT for name in ("name", "portal", "resourceManager")},
    }
    token = {"token_type": {"const": "Bearer"}, "expires_in": COUNT, "ext_expires_in": COUNT, "access_token": TEXT}
    return {
        "Authority": closed(authority),
        "Clouds": listed(closed(cloud)),
        "OAuthToken": closed(token),
        "OAuthError": closed({"error": TEXT, "error_description": TEXT}),
    }


def components() -> dict[str, Schema]:
    """Schemas by the names that operations use."""
    people = {name: TEXT for name in ("createdBy", "createdByType", "lastModifiedBy", "lastModifiedByType")}
    return {
        **_error(),
        "SystemData": closed({**people, "createdAt": TIME, "lastModifiedAt": TIME}),
        "Operation": _operation(),
        "Keys": closed({"primaryKey": TEXT, "secondaryKey": TEXT}),
        "EndpointToken": closed(
            {
                "accessToken": TEXT,
                "expiryTimeUtc": {"type": "integer"},
                "refreshAfterTimeUtc": {"type": "integer"},
                "tokenType": {"const": "Bearer"},
            }
        ),
        "Secrets": closed({"secretsType": {"const": "Sas"}, "sasToken": TEXT}),
        "Logs": closed({"content": TEXT}),
        "Health": closed({"status": {"const": "ok"}, "role": {"enum": ["leader", "follower"]}}),
        "Readiness": closed({"status": {"const": "ready"}}),
        "IdentityToken": closed(
            {"access_token": TEXT, "expires_on": TEXT, "resource": TEXT, "token_type": {"const": "Bearer"}}
        ),
        "OpenApi": ANY,
        **_uploads(),
        **_clients(),
        **_nodes(),
        **_dataplane(),
        **_metrics(),
    }
