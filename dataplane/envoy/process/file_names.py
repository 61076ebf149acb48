"""The names of Envoy's files in the directories of its agent.

Decides them. Must not know what the files hold.
"""

from __future__ import annotations

from pathlib import Path


def bootstrap_file(state: Path) -> Path:
    """Envoy's ``--config-path``."""
    return state / "bootstrap.json"


def process_record(state: Path) -> Path:
    """Which process runs, and the digest of what it was started with."""
    return state / "envoy.json"


def metrics_file(state: Path) -> Path:
    """The sums of the counters."""
    return state / "metrics.json"


def ads_socket(run: Path) -> Path:
    """Where the agent serves the aggregated discovery service."""
    return run / "ads.sock"


def callout_socket(run: Path) -> Path:
    """Where the agent answers questions about single requests."""
    return run / "callouts.sock"


def answers_socket(run: Path) -> Path:
    """Where the agent is shown the answers that it compares."""
    return run / "answers.sock"


def admin_socket(run: Path) -> Path:
    """Where Envoy serves its admin interface."""
    return run / "envoy-admin.sock"


def access_log(logs: Path | None) -> Path | None:
    """One line for each request. None: standard output."""
    return None if logs is None else logs / "access.log"


def envoy_log(logs: Path | None) -> Path | None:
    """Envoy's own log. None: the agent's log."""
    return None if logs is None else logs / "envoy.log"
