"""One JSON line for each request.

Decides what is logged: never the credentials, the query or a body. Must not know when the file is
rotated. Source: Envoy's page "Access logging".
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from amphitrite.dataplane.envoy.filters import request_stats
from amphitrite.dataplane.envoy.filters.local_replies import route_value
from amphitrite.dataplane.envoy.filters.request_ids import CLIENT_REQUEST_ID

_LOGGERS = "type.googleapis.com/envoy.extensions.access_loggers"
_FIELDS = {
    "time": "%START_TIME%",
    "request_id": "%REQ(x-request-id)%",
    "client_request_id": f"%REQ({CLIENT_REQUEST_ID})%",
    "endpoint": route_value("endpoint"),
    "deployment": route_value("deployment"),
    "cluster": "%UPSTREAM_CLUSTER%",
    "instance": "%UPSTREAM_HOST%",
    "method": "%REQ(:METHOD)%",
    "path": "%PATH(NQ:ORIG_OR_PATH)%",
    "protocol": "%PROTOCOL%",
    "code": "%RESPONSE_CODE%",
    "model_code": "%RESP(ms-azureml-model-error-statuscode)%",
    "flags": "%RESPONSE_FLAGS%",
    "details": "%RESPONSE_CODE_DETAILS%",
    "attempts": "%UPSTREAM_REQUEST_ATTEMPT_COUNT%",
    "duration_ms": "%DURATION%",
    "request_ms": "%REQUEST_DURATION%",
    "response_ms": "%RESPONSE_DURATION%",
    "bytes_received": "%BYTES_RECEIVED%",
    "bytes_sent": "%BYTES_SENT%",
    "client": "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%",
    "user_agent": "%REQ(user-agent)%",
}


def access_log(path: Path | None) -> list[dict[str, Any]]:
    """The ``access_log`` list of a connection manager that writes to ``path``; None: to standard
    output. It includes the loggers that count requests.

    Health checks of the proxy itself are left out: each prober sends one every few seconds.
    """
    shape = {"log_format": {"json_format": _FIELDS, "omit_empty_values": False}}
    if path is None:
        kind = {"@type": f"{_LOGGERS}.stream.v3.StdoutAccessLog", **shape}
    else:
        kind = {"@type": f"{_LOGGERS}.file.v3.FileAccessLog", "path": str(path), **shape}
    return [
        {
            "name": "envoy.access_loggers.stdout" if path is None else "envoy.access_loggers.file",
            "filter": {"not_health_check_filter": {}},
            "typed_config": kind,
        },
        *request_stats.access_loggers(),
    ]
