"""The edge to protobuf: Envoy's generated messages.

Decides nothing. Must not know what a message is for. The only module that imports generated code.
It imports only subpackages of ``envoy``, since two distributions own its ``__init__.py`` (see
``binary``). Importing an extension registers its types, which ``json_conversion`` needs to resolve
an ``@type``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from envoy.config.cluster.v3 import cluster_pb2  # type: ignore[import-untyped]  # noqa: F401
from envoy.config.core.v3 import extension_pb2  # type: ignore[import-untyped]  # noqa: F401
from envoy.config.endpoint.v3 import endpoint_pb2  # type: ignore[import-untyped]  # noqa: F401
from envoy.config.route.v3 import route_pb2, scoped_route_pb2  # type: ignore[import-untyped]  # noqa: F401
from envoy.extensions.filters.http.buffer.v3 import buffer_pb2  # type: ignore[import-untyped]  # noqa: F401
from envoy.extensions.filters.http.ext_authz.v3 import ext_authz_pb2  # type: ignore[import-untyped]  # noqa: F401
from envoy.extensions.filters.http.ext_proc.v3 import ext_proc_pb2  # type: ignore[import-untyped]  # noqa: F401
from envoy.extensions.filters.http.header_to_metadata.v3 import (  # type: ignore[import-untyped]
    header_to_metadata_pb2,  # noqa: F401
)
from envoy.extensions.filters.http.jwt_authn.v3 import config_pb2  # type: ignore[import-untyped]  # noqa: F401
from envoy.extensions.filters.http.lua.v3 import lua_pb2  # type: ignore[import-untyped]  # noqa: F401
from envoy.extensions.retry.host.previous_hosts.v3 import (  # type: ignore[import-untyped]
    previous_hosts_pb2,  # noqa: F401
)
from envoy.extensions.transport_sockets.tls.v3 import secret_pb2  # type: ignore[import-untyped]  # noqa: F401
from envoy.extensions.upstreams.http.v3 import (  # type: ignore[import-untyped]
    http_protocol_options_pb2,  # noqa: F401
)
from envoy.service.auth.v3 import external_auth_pb2  # type: ignore[import-untyped]
from envoy.service.discovery.v3 import discovery_pb2  # type: ignore[import-untyped]
from envoy.service.ext_proc.v3 import external_processor_pb2  # type: ignore[import-untyped]
from google.protobuf import any_pb2

from amphitrite.dataplane.envoy.protobuf import json_conversion

CheckRequest: Any = external_auth_pb2.CheckRequest
CheckResponse: Any = external_auth_pb2.CheckResponse
DeltaRequest: Any = discovery_pb2.DeltaDiscoveryRequest
DeltaResponse: Any = discovery_pb2.DeltaDiscoveryResponse
ProcessingRequest: Any = external_processor_pb2.ProcessingRequest
ProcessingResponse: Any = external_processor_pb2.ProcessingResponse


def pack(type_url: str, value: Mapping[str, Any]) -> any_pb2.Any:
    """The packed message of that type. Raises ValueError when ``value`` is not its JSON form."""
    return json_conversion.pack(type_url, value)
