"""The OpenAPI document of the REST API, and the route that serves it.

Decides how the document comes about: paths, methods and parameters from the routes (FastAPI's generator), documents
from the JSON Schemas and the tables of wire fields, the rest from one table of operations and one of payloads. May
know the routes' limits and the package ``schemas``; must not know the store, nor how a route does its work.
"""

from amphitrite.controlplane.api.openapi.generator import document, router

__all__ = ["document", "router"]
