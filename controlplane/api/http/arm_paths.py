"""Azure Resource Manager's paths: which segments are keywords and which are names.

Decides the spelling of keywords. Must not know what is behind a path.
"""

from __future__ import annotations

from amphitrite.schemas.names import PROVIDER

#: Every keyword of the routes, by its lower-case form.
_WORDS = {
    word.lower(): word
    for word in (
        *("subscriptions", "resourceGroups", "providers", "workspaces", "locations", PROVIDER),
        *("mfeOperationsStatus", "mfeOperationResults", "onlineEndpoints", "deployments", "models", "versions"),
        *("listNodes", "vmSizes", "microsoft.insights", "metrics", "autoscaleSettings"),
        *("datastores", "listSecrets", "listKeys", "regenerateKeys", "getLogs", "token", "skus"),
        *("environments", "codes", "computes", "data", "jobs", "components", "batchEndpoints", "startPendingUpload"),
        *("featuresets", "featurestoreEntities", "schedules", "serverlessEndpoints", "marketplaceSubscriptions"),
        *("connections", "outboundRules", "labelingJobs", "registries", "package", "diagnose"),
    )
}


def canonical(path: str) -> str:
    """``path`` with its keywords in the routes' spelling. Names and other paths are unchanged.

    Keywords and names alternate; after ``providers`` come the provider's name and a keyword.
    """
    segments = path.split("/")
    if len(segments) < 2 or segments[1].lower() != "subscriptions":
        return path
    position = 1
    while position < len(segments):
        word = segments[position] = _WORDS.get(segments[position].lower(), segments[position])
        if word == "providers" and position + 1 < len(segments):
            segments[position + 1] = _WORDS.get(segments[position + 1].lower(), segments[position + 1])
        position += 2
    return "/".join(segments)
