"""What is accepted although it cannot be met in full, and what users are told of it.

Decides the notes about a document. ``unsupported_fields`` refuses what must not be accepted. A
value is accepted with a note if Azure ML's own documents set it and a deployment without it serves
the same answers. Must not know who shows the notes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def notes(document: Mapping[str, Any]) -> list[str]:
    """The notes about a deployment document, a sentence each; empty if all of it is met."""
    found = []
    if document.get("app_insights_enabled"):
        found.append(
            "app_insights_enabled is stored, but nothing is sent to Application Insights: metrics are at the "
            "server's /metrics, logs at ml online-deployment get-logs"
        )
    return found
