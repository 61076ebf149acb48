"""JSON Web Tokens: Envoy's filter that verifies them, and the condition by which a route knows that it did.

Decides what makes a token count, whose tokens a route takes and to which route a token is bound. The filter reaches
Envoy as a resource of its own, so that keys change without the listener; it is off but on the one route of an endpoint
with tokens that refuses (see ``refusals``): requests with keys never meet it. Must not know what else a route does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from amphitrite.dataplane.envoy.filters import bodiless_requests, sequence_affinity
from amphitrite.dataplane.envoy.protobuf.common_values import ADS_AT_START
from amphitrite.dataplane.table.routing_table import Route, TokenIssuer

FILTER = "envoy.filters.http.jwt_authn"
_TYPE = "type.googleapis.com/envoy.extensions.filters.http.jwt_authn.v3"
#: The ways in for which there is a requirement always, also while nobody issues tokens.
_AUTHS = ("aad_token", "aml_token")
#: Three parts in base64url, and nothing behind them: not a second header's value, which Envoy joins with a comma.
_SHAPE = r"Bearer [A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+"


def http_filter() -> dict[str, Any]:
    """The filter for the connection manager: off unless a route asks for it, its content to be had on the stream."""
    return {
        "name": FILTER,
        "disabled": True,
        "config_discovery": {"config_source": ADS_AT_START, "type_urls": [f"{_TYPE}.JwtAuthentication"]},
    }


def extension(issuers: Iterable[TokenIssuer]) -> dict[str, Any]:
    """The ``TypedExtensionConfig`` with the content of the filter.

    Whatever is wrong with a token, the filter lets the request pass, less what the token says: the routes refuse it.
    """
    providers = {issuer.auth: _provider(issuer) for issuer in issuers}
    # Without an issuer nothing is verified, so that nobody is let in.
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
    """The matching parts of the two ``Route`` messages that refuse whoever shows no token of this route.

    A request with a token first finds the second one, whose filter verifies it, takes it out of the request, notes its
    claims and has the routes asked again. Now neither matches, or, with another route's token, the first one.
    """
    unverified = [{**_verified(route), "invert": True}]
    shape = {"name": "authorization", "string_match": {"safe_regex": {"regex": _SHAPE}}, "invert_match": True}
    yield {
        "match": {
            "prefix": "/",
            # An absent header counts as empty: without that word a negated match on it is false.
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
    """Per-filter configuration of a ``VirtualHost`` that has the filters of its routes wait. Which filters a request
    meets is settled when it first finds a route, and that is the one that refuses: those that are off by then stay
    off."""
    return {**sequence_affinity.waiting(), **bodiless_requests.waiting()}


def _verified(route: Route) -> dict[str, Any]:
    """The ``MetadataMatcher`` that a verified token of ``route`` fulfils; each that was verified has an ``iss``."""
    claim: str
    value: dict[str, Any]
    if route.auth == "aml_token":
        claim, value = "endpoint", {"string_match": {"exact": route.name}}
    else:
        claim, value = "iss", {"present_match": True}
    return {"filter": FILTER, "path": [{"key": route.auth}, {"key": claim}], "value": value}


def _provider(issuer: TokenIssuer) -> dict[str, Any]:
    return {
        "issuer": issuer.issuer,
        "audiences": list(issuer.audiences),
        "local_jwks": {"inline_string": issuer.jwks},
        "require_expiration": True,
        # By default a token is also taken from the query, which is logged in many places.
        "from_headers": [{"name": "Authorization", "value_prefix": "Bearer "}],
        "forward": False,
        "payload_in_metadata": issuer.auth,
        "clear_route_cache": True,
    }
