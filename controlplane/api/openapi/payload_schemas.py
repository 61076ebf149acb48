"""Payloads that are not documents: errors, operations, metrics, tokens, agents.

Decides their shapes. A shape is a line of ``name:type``. A name alone is text. ``name?`` is
optional. ``name=a|b`` is one of these words. ``[x]`` is a list, ``{x}`` an object with any names.
``x|null`` may be null. A type is one of TYPES or another shape. Must not know documents or paths.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, get_args

from amphitrite.controlplane.api.agents.routing_tables import VERSION_MAX
from amphitrite.controlplane.api.agents.sample_flushes import FLUSH_MAX
from amphitrite.controlplane.api.azure.workspace import SECRET_HOURS_MAX
from amphitrite.controlplane.api.openapi.field_schemas import Schema
from amphitrite.controlplane.core.history.revisions import Cause
from amphitrite.controlplane.core.rollouts.traffic_rollout import State as RolloutState
from amphitrite.dataplane.metrics.answer_counts import TENSOR
from amphitrite.dataplane.metrics.counters import CREDENTIAL, FIELD, NAME
from amphitrite.dataplane.metrics.demand import NUMBER_MAX
from amphitrite.schemas.errors import CODES, SCORING_CODES

_COUNT = {"type": "number", "minimum": 0, "exclusiveMaximum": 2**63}
_SAID = {"type": ["string", "null"]}
_STATES = ("Creating", "Updating", "Scaling", "Succeeded", "Failed", "Deleting", "Canceled")


def _by_name(pattern: re.Pattern[str], content: Mapping[str, Any]) -> Schema:
    names = {"pattern": f"^(?:{pattern.pattern})$"}
    return {"type": "object", "propertyNames": names, "additionalProperties": content}


TYPES: Mapping[str, Schema] = {
    "any": {"type": "object"},
    "code": {"enum": sorted(set(CODES) - set(SCORING_CODES))},
    "cause": {"enum": [*get_args(Cause)]},
    "count": {"type": "integer", "minimum": 0},
    "flag": {"type": "boolean"},
    "int": {"type": "integer"},
    "number": {"type": "number"},
    "percent": {"type": "integer", "minimum": 0, "maximum": 100},
    "positive": {"type": "integer", "minimum": 1},
    "said": {"type": "string", "minLength": 1},
    "rolloutState": {"enum": [*get_args(RolloutState)]},
    "state": {"enum": [*_STATES]},
    "text": {"type": "string"},
    "time": {"type": "string", "format": "date-time"},
    "uri": {"type": "string", "format": "uri"},
    # Of requests.
    "counters": _by_name(NAME, _by_name(NAME, _by_name(FIELD, _COUNT))),
    "alpha": {"type": "number", "minimum": 1e-6, "maximum": 0.2},
    "share": {"type": "string", "pattern": "^[0-9]{1,4}([.][0-9]{1,6})? ?%$"},
    "span": {"type": "string", "pattern": "^[0-9]{1,9}([.][0-9]{1,6})?(ms|s|m|h)$"},
    "steps": {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 100}, "maxItems": 20},
    "current_key": {"description": "Ignored. Azure's SDK sends the current key."},
    "demand": {
        "description": "endpoint, deployment, age (s), seconds, in flight, held, answered, busy (s), refused",
        "type": "array",
        "prefixItems": [{"type": "string", "pattern": f"^(?:{NAME.pattern})$"}] * 2,
        "items": {"type": "number", "minimum": 0, "exclusiveMaximum": NUMBER_MAX},
        "minItems": 9,
        "maxItems": 9,
    },
    "flush": {"type": "integer", "minimum": 0, "maximum": FLUSH_MAX},
    "differences": _by_name(NAME, _by_name(NAME, _by_name(TENSOR, _COUNT))),
    "hours": {"type": "integer", "minimum": 1, "maximum": SECRET_HOURS_MAX},
    "in_flight": _by_name(NAME, _by_name(NAME, _COUNT)),
    "instance": {**_SAID, "description": "Lines of this instance only."},
    "log": {"enum": ["InferenceServer", "StorageInitializer", None]},
    "maybe_said": _SAID,
    "scope": {"type": "string", "pattern": "^[^ ]+/[.]default$"},
    "secret": {"type": "string", "description": "The token of `ml server env`."},
    "since": _COUNT,
    "used": _by_name(NAME, _by_name(CREDENTIAL, _COUNT)),
    "version": {"type": ["integer", "null"], "minimum": 0, "maximum": VERSION_MAX},
}
ANSWERS: Mapping[str, str] = {
    "Error": "error:ErrorBody",
    "ErrorBody": "code:code message:said target? details?:[ErrorDetail] additionalInfo?:[ErrorInfo]",
    "ErrorDetail": "code message target additionalInfo:[ErrorInfo]",
    "ErrorInfo": "type info:any",
    "AutoscaleSetting": "id name type location tags:{text} properties:any systemData:SystemData"
    " status:AutoscaleStatus warnings?:[text]",
    "AutoscaleSettingPage": "value:[AutoscaleSetting] nextLink?:uri",
    "AutoscaleStatus": "reason instances?:count profile?",
    "SystemData": "createdBy createdByType lastModifiedBy lastModifiedByType createdAt:time lastModifiedAt:time",
    "Operation": "id name status=InProgress|Succeeded|Failed|Canceled startTime:time percentComplete:percent resourceId"
    " properties:OperationProperties endTime?:time error?:ErrorBody",
    "OperationProperties": "verb=create|update|delete|regenerateKeys phases:[OperationPhase]",
    "OperationPhase": "name message startTime:time",
    "Keys": "primaryKey secondaryKey",
    "KeyUsage": "value:[KeyUse]",
    "Storage": "models:[StoredModel] rows:[StorageRow]",
    "StoredModel": "name version files:count size:count archived:flag anonymous:flag usedBy:[text] lastUsed:time|null",
    "StorageRow": "name place files:count size:count freeable:count",
    "Pruned": "dryRun:flag freed:[Freed] files:count size:count kept:Kept",
    "Freed": "name files:count size:count",
    "Kept": "files:count size:count olderThan:number",
    "KeyUse": "key=primary|secondary|token lastUsedTime:maybe_said",
    "EndpointToken": "accessToken expiryTimeUtc:int refreshAfterTimeUtc:int tokenType=Bearer",
    "Secrets": "secretsType=Sas sasToken",
    "Logs": "content",
    "Health": "status=ok role=leader|follower",
    "Readiness": "status=ready",
    "PendingUpload": "pendingUploadType=TemporaryBlobReference pendingUploadId"
    " blobReferenceForConsumption:BlobReference",
    "BlobReference": "blobUri storageAccountArmId credential:SasCredential",
    "SasCredential": "credentialType=SAS sasUri",
    "IdentityToken": "access_token expires_on resource token_type=Bearer",
    "OAuthToken": "token_type=Bearer expires_in:count ext_expires_in:count access_token",
    "OAuthError": "error error_description",
    "Authority": "issuer authorization_endpoint token_endpoint token_endpoint_auth_methods_supported:[text]"
    " grant_types_supported:[text] response_types_supported:[text]",
    "Cloud": "authentication:CloudAuthentication suffixes:CloudSuffixes name portal resourceManager",
    "CloudAuthentication": "loginEndpoint audiences:[text]",
    "CloudSuffixes": "storage",
    "Nodes": "nodes:[Node] gpus:Gpus",
    "Node": "nodeId nodeState=idle|running|unusable gpus:Gpus resources:{NodeResource}",
    "NodeResource": "total free",
    "Gpus": "total:int used:int free:int",
    "Sizes": "value:[Size]",
    "Size": "name vCPUs:number memoryGB:number gpus:count gpuClass:text|null origin=azure|compute requests?:{text}"
    " limits?:{text}",
    "Agents": "value:[Agent]",
    "Agent": "id live:flag seen_at:number acknowledged_version:count drained_version:count"
    " rejected_version:count|null error:text|null envoy:AgentEnvoy",
    "AgentEnvoy": "pid:count|null version:text|null",
    "TrafficHistory": "value:[TrafficChange]",
    "TrafficChange": "revision:positive time:time author:said reason:text|null cause:cause from:{percent} to:{percent}"
    " mirrorFrom:{percent} mirrorTo:{percent}",
    "Rollouts": "value:[Rollout]",
    "Rollout": "number:positive endpoint to state:rolloutState reason phase step:count percent:percent from:{percent}"
    " target:{percent} author:said startReason:text|null startTime:time stepTime:time|null endTime:time|null"
    " settings:RolloutSettings objectives:[RolloutObjective] largestDifferences:{number}",
    "RolloutSettings": "steps:[positive] bake maxErrorRate maxP50? maxP90? maxP95? maxP99? compareWith? margin?"
    " alpha:number shadow? maxAnswerDifference?:number maxDifferingAnswers? minArgmaxAgreement? answerShare?",
    "RolloutObjective": "name limit total:count bad:count otherTotal?:count otherBad?:count against:percent"
    " kept:percent needed:count|null",
    "DeploymentHistory": "value:[DeploymentRevision]",
    "DeploymentRevision": "revision:positive time:time author:said reason:text|null cause:cause model:text|null"
    " instanceCount:positive changed:[text]",
    "ScaleHistory": "value:[ScaleEvent]",
    "ScaleEvent": "time:time from:count to:count reason:said by:said mode=apply|recommend",
    "FetchedModel": "digest bytes:count files:[FetchedFile] empty_directories:[text] in_use:[text]",
    "FetchedFile": "path digest size:count url",
    "Metrics": "cost:count timespan interval namespace resourceregion value:[Metric]",
    "Metric": "id type displayDescription unit errorCode name:MetricName timeseries:[MetricSeries]",
    "MetricName": "value localizedValue",
    "MetricSeries": "metadatavalues:[MetricDimension] data:[MetricPoint]",
    "MetricDimension": "name:MetricName value",
    "MetricPoint": "timeStamp:time average?:number total?:number",
}
#: Requests may contain more fields. They are ignored.
REQUESTS: Mapping[str, str] = {
    "RegenerateKeysBody": "keyType=Primary|Secondary|primary|secondary keyValue?:current_key",
    "ListSecretsBody": "expireAfterHours?:hours",
    "PendingUploadBody": "pendingUploadType?=TemporaryBlobReference",
    "OAuthForm": "grant_type=client_credentials client_id=amphitrite client_secret:secret scope:scope",
    "GetLogsBody": "tail?:positive containerType?:log instance?:instance sinceSeconds?:positive previous?:flag",
    "AutoscaleSettingBody": "location?:maybe_said tags?:any|null properties?:any|null",
    "RevisionBody": "revision?:positive|null",
    "RolloutBody": "to:said steps?:steps|null bake?:span|null maxErrorRate?:share|null maxP50?:span|null"
    " maxP90?:span|null maxP95?:span|null maxP99?:span|null compareWith?:maybe_said margin?:share|null"
    " alpha?:alpha|null shadow?:span|null maxAnswerDifference?:number|null maxDifferingAnswers?:share|null"
    " minArgmaxAgreement?:share|null answerShare?:share|null",
    "PromoteBody": "full?:flag",
    "AgentMetricsBody": "began:since counters:counters in_flight:in_flight used:used waiting?:in_flight"
    " differences?:differences",
    "AgentSamplesBody": "flush:flush samples:[demand]",
    "AgentReportBody": "acknowledged_version?:version drained_version?:version rejected_version?:version"
    " error?:maybe_said envoy?:ReportedEnvoy|null",
    "ReportedEnvoy": "pid?:version version?:maybe_said",
}


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def type_(text: str) -> Schema:
    """The schema of a type, from its notation in a shape."""
    if text.endswith("|null"):
        return {"anyOf": [type_(text.removesuffix("|null")), {"type": "null"}]}
    if text[0] == "[":
        return {"type": "array", "items": type_(text[1:-1])}
    if text[0] == "{":
        return {"type": "object", "additionalProperties": type_(text[1:-1])}
    return TYPES[text] if text in TYPES else ref(text)


def shape(text: str, *, closed: bool = True) -> Schema:
    """The schema of the shape ``text``. ``closed``: it allows no other properties."""
    properties, required = {}, []
    for name, optional, mark, rest in re.findall(r"(\w+)(\??)(?:([:=])(\S+))?", text):
        words = rest.split("|")
        one_of = {"const": rest} if len(words) == 1 else {"enum": words}
        properties[name] = one_of if mark == "=" else type_(rest or "text")
        required += [] if optional else [name]
    made: Schema = {"type": "object", "properties": properties, **({"required": required} if required else {})}
    return {**made, "additionalProperties": False} if closed else made


def components() -> dict[str, Schema]:
    """All schemas by the names that operations use."""
    storage_error, blobs = (shape(text, closed=False) for text in ("Code? Message?", "Prefix? NextMarker? Blobs?:any"))
    requests = {name: shape(text, closed=False) for name, text in REQUESTS.items()}
    requests["OAuthForm"] |= {"maxProperties": 32, "additionalProperties": TYPES["text"]}
    return {
        **{name: shape(text) for name, text in ANSWERS.items()},
        **requests,
        "StorageError": {**storage_error, "xml": {"name": "Error"}},
        "BlobList": {**blobs, "xml": {"name": "EnumerationResults"}},
        "Clouds": type_("[Cloud]"),
        "MetricsText": TYPES["text"],
        **dict.fromkeys(("OpenApi", "RoutingTable"), TYPES["any"]),
    }
