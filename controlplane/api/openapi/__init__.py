"""The OpenAPI document of the REST API, and the route that serves it.

Decides the sources of the document. Paths, methods and parameters come from the routes (FastAPI's
generator). Documents come from the JSON Schemas and the tables of wire fields. The rest comes from
one table of operations and one of payloads. Must not know the store, or how a route works. Source:
https://spec.openapis.org/oas/v3.1.0
"""

from amphitrite.controlplane.api.openapi.generator import document, router

__all__ = ["document", "router"]
