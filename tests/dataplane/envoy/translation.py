"""All of Envoy's resources of a routing table, which the product makes kind by kind, in the order
of a change."""

from __future__ import annotations

from amphitrite.dataplane.envoy.translate.resources import (
    CLUSTER,
    ENDPOINTS,
    EXTENSION,
    ROUTES,
    SCOPES,
    Resource,
    Translator,
)
from amphitrite.dataplane.table.routing_table import RoutingTable


def translate(table: RoutingTable, scoring_domain: str | None = None) -> dict[str, dict[str, Resource]]:
    """Every resource of ``table``, by type URL and name."""
    translator = Translator(scoring_domain)
    return {
        CLUSTER: translator.clusters(table.clusters, {}),
        ENDPOINTS: translator.endpoints(table.clusters, {}),
        EXTENSION: translator.extensions(table),
        ROUTES: translator.routes(table),
        SCOPES: translator.scopes(table),
    }
