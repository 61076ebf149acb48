"""Scoring addresses by host name: ``https://<endpoint>.<scoring domain>/``.

The model server's path follows. Decides which connections are for host names (by the server name in
TLS, RFC 6066) and the RouteConfiguration of such an address: that of the endpoint's path, with the
host in place of ``/endpoints/<endpoint>``. A host is in lower case, as clients write it. Must not
know what the routes decide.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: What precedes the model server's path in an endpoint's routes, both as text and in expressions.
_ANY = "/endpoints/[^/]+"


def host(endpoint: str, domain: str) -> str:
    """The host of ``endpoint``, which also names its scope and its RouteConfiguration. No
    endpoint's name has a dot, so no two names are the same."""
    return f"{endpoint.lower()}.{domain}"


def filter_chain_match(domain: str) -> dict[str, Any]:
    """The connections whose client asks for a host below ``domain``."""
    return {"server_names": [f"*.{domain}"]}


def scope_fragment() -> dict[str, Any]:
    """The scope key: the host, without a port or a trailing dot (see ``listener``)."""
    return {"header_value_extractor": {"name": ":authority", "element_separator": "", "index": 0}}


def route_configuration(by_path: Mapping[str, Any], endpoint: str, domain: str) -> dict[str, Any]:
    """The RouteConfiguration for the host name. ``by_path``: the endpoint's RouteConfiguration for
    its path."""
    name = host(endpoint, domain)
    (virtual_host,) = by_path["virtual_hosts"]
    routes = [below for route in virtual_host["routes"] if (below := _below_host(route, f"/endpoints/{endpoint}"))]
    return {**by_path, "name": name, "virtual_hosts": [{**virtual_host, "routes": routes}]}


def _below_host(route: Mapping[str, Any], root: str) -> dict[str, Any] | None:
    """``route`` with its path below the root of the host. None where it is about paths that are not
    the endpoint's."""
    match = dict(route["match"])
    if any(
        h["name"] == ":path" and _ANY.startswith(h["string_match"].get("prefix", " ")) for h in match.get("headers", ())
    ):
        return None
    for kind in ("path", "prefix"):
        if match.get(kind, "").startswith(root):
            match[kind] = match[kind].removeprefix(root)
            if match[kind] == "":
                if kind == "path":
                    return None  # It is the root as well, which has a route of its own.
                match[kind] = "/"
    if "safe_regex" in match:
        match["safe_regex"] = {"regex": match["safe_regex"]["regex"].replace(_ANY, "")}
    return {**route, "match": match}
