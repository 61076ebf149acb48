"""JSON Web Tokens: the filter that verifies them, and the condition for a route to accept one.

Decides when a token is valid, which issuer a route accepts and how a token is bound to a route. The
filter's content reaches Envoy as a resource of its own, so that keys change without the listener.
The filter is on only in the one route of an endpoint with tokens that refuses (see ``refusals``):
requests with keys never pass it. Must not know what else a route does. Sources: RFC 7519, Envoy's
page "JWT Authentication".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from amphitrite.dataplane.envoy.filters import bodiless_requests, nested_bodies, sequence_affinity, unsized_bodies
from amphitrite.dataplane.envoy.protobuf.common_values import ADS_AT_START
from amphitrite.dataplane.table.routing_table import Route, TokenIssuer

FILTER = "envoy.filters.http.jwt_authn"
_TYPE = "type.googleapis.com/envoy.extensions.filters.http.jwt_authn.v3"
#: These always have a requirement, even while nobody issues tokens.
_AUTHS = ("aad_token", "aml_token")
#: How clients write what precedes a token, and a key too. Some clients of gRPC send a space first.
SCHEME = r"[ \t]*(?:Bearer|bearer|BEARER) +"
#: Three parts in base64url and nothing after them. A second header's value would follow a comma.
_SHAPE = SCHEME + r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+"


def http_filter() -> dict[str, Any]:
    """The filter for the connection manager. It is off unless a route turns it on, and gets its
    content from the discovery service."""
    return {
        "name": FILTER,
        "disabled": True,
        "config_discovery": {"config_source": ADS_AT_START, "type_urls": [f"{_TYPE}.JwtAuthentication"]},
    }


def extension(issuers: Iterable[TokenIssuer]) -> dict[str, Any]:
    """The ``TypedExtensionConfig`` with the content of the filter.

    The filter lets each request pass. A token that it cannot verify adds no claims, and then the
    routes refuse the request.
    """
    providers = {issuer.auth: _provider(issuer) for issuer in issuers}
    # Without an issuer no token is valid, so nobody is let in.
    nothing: dict[str, Any] = {"allow_missing_or_failed": {}}
    requirements = {
        auth: {"requires_any": {"requirements": [{"provider_name": auth}, nothing]}} if auth in providers else nothing
        for auth in _AUTHS
    }
    return {
        "name": FILTER,
        "typed_config": {
            "@type": f"{_TYPE}.JwtAuthentication",
            "providers": providers,
            "requirement_map": requirements,
        },
    }


def refusals(route: Route) -> Iterator[dict[str, Any]]:
    """The parts of the two ``Route`` messages that refuse requests without a valid token: their
    matches, and the second one's filter.

    A request with a token first finds the second route. The filter on it verifies the token,
    removes it from the request, stores its claims and has the routes evaluated again. Now neither
    route matches. With a valid token of another route the first one matches.
    """
    unverified = [{**_verified(route), "invert": True}]
    shape = {"name": "authorization", "string_match": {"safe_regex": {"regex": _SHAPE}}, "invert_match": True}
    yield {
        "match": {
            "prefix": "/",
            # An absent header counts as empty. Without this field a negated match on an absent
            # header is false.
            "headers": [{**shape, "treat_missing_header_as_empty": True}],
            "dynamic_metadata": unverified,
        }
    }
    yield {
        "match": {"prefix": "/", "dynamic_metadata": unverified},
        "typed_per_filter_config": {
            FILTER: {
                "@type": "type.googleapis.com/envoy.config.route.v3.FilterConfig",
                "config": {"@type": f"{_TYPE}.PerRouteConfig", "requirement_name": route.auth},
            }
        },
    }


def other_filters() -> dict[str, Any]:
    """Per-filter configuration of a ``VirtualHost`` that keeps its routes' filters available. Envoy
    decides which filters a request passes when it first finds a route, which is the refusing one
    here. A filter that is off at that point stays off."""
    others = (bodiless_requests, unsized_bodies, nested_bodies, sequence_affinity)
    return {name: config for other in others for name, config in other.inactive().items()}


def _verified(route: Route) -> dict[str, Any]:
    """The ``MetadataMatcher`` that a valid token of ``route`` meets. Every verified token has an
    ``iss``."""
    claim: str
    value: dict[str, Any]
    if route.auth == "aml_token":
        claim, bound = ("binding", route.binding) if route.binding else ("endpoint", route.name)
        value = {"string_match": {"exact": bound}}
    else:
        claim, value = "iss", {"present_match": True}
    return {"filter": FILTER, "path": [{"key": route.auth}, {"key": claim}], "value": value}


def _provider(issuer: TokenIssuer) -> dict[str, Any]:
    return {
        "issuer": issuer.issuer,
        "audiences": list(issuer.audiences),
        "local_jwks": {"inline_string": issuer.jwks},
        "require_expiration": True,
        # By default a token is also accepted in the query, which many places log.
        "from_headers": [
            {"name": "Authorization", "value_prefix": prefix} for prefix in ("Bearer ", "bearer ", "BEARER ")
        ],
        "forward": False,
        "payload_in_metadata": issuer.auth,
        "clear_route_cache": True,
    }
