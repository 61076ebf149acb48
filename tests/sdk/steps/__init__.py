"""Steps of a user of Azure's SDK, run in an environment that has the SDK and nothing of this
project."""

from . import (
    assets,
    changes,
    custom,
    deployments,
    endpoints,
    kubernetes,
    models,
    notebook,
    tokens,
    uploads,
    ways,
)

#: What runs beside each other: modules whose steps run in this order.
TRACKS = (
    ("endpoints", "deployments", "changes"),
    ("custom", "notebook"),
    ("tokens",),
    ("models", "uploads", "assets"),
    ("kubernetes",),
)
#: What changes the environment of the process, and so runs when the others have ended.
LAST = ("ways",)

__all__ = [
    "LAST",
    "TRACKS",
    "assets",
    "changes",
    "custom",
    "deployments",
    "endpoints",
    "kubernetes",
    "models",
    "notebook",
    "tokens",
    "uploads",
    "ways",
]
