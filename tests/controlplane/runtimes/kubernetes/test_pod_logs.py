"""Which log of which pod is read for an instance, as ``kubectl logs`` would."""

from __future__ import annotations

from typing import Any

import pytest

from amphitrite.controlplane.runtimes.kubernetes.pods import pod_logs
from amphitrite.controlplane.runtimes.log_text import previous_attempts
from amphitrite.controlplane.runtimes.runtime import LogQuery

from .recordings import Recording, recorded


class Logs:
    """The part of a cluster that gives logs: each is one line, which says what was asked for."""

    def text(self, path: str, **query: Any) -> str:
        asked = {name: value for name, value in query.items() if name not in ("container", "limitBytes", "tailLines")}
        return f"{path.split('/')[-2]} {asked}\n"


def lines(recording: Recording, query: LogQuery) -> list[str]:
    found = list(recording.observed())
    if query.previous:
        found = previous_attempts(found, pod_logs.pod_of)
    logs: Any = Logs()
    return [line for _, many in pod_logs.read(logs, "ns", found, recording.pods, query) for line in many]


def restarted() -> Recording:
    """A pod that is ready in its second attempt."""
    recording = recorded("ready")
    (server,) = recording.pod["status"]["containerStatuses"]
    server["restartCount"] = 1
    server["lastState"] = recorded("crash").pod["status"]["containerStatuses"][0]["lastState"]
    return recording


@pytest.mark.parametrize(
    ("name", "query", "asked"),
    [
        ("ready", LogQuery(5), ["{'previous': 'false'}"]),
        ("ready", LogQuery(5, since_s=600.0), ["{'previous': 'false', 'sinceSeconds': '600'}"]),
        ("ready", LogQuery(5, previous=True), []),
        # Between two attempts the log of the container is still that of the last one.
        ("crash", LogQuery(5, previous=True, since_s=1.0), ["{'previous': 'false', 'sinceSeconds': '1'}"]),
        ("restarted", LogQuery(5, previous=True), ["{'previous': 'true'}"]),
        ("restarted", LogQuery(5), ["{'previous': 'false'}", "{'previous': 'true'}"]),
    ],
)
def test_what_is_asked_for(name: str, query: LogQuery, asked: list[str]) -> None:
    recording = restarted() if name == "restarted" else recorded(name)
    assert lines(recording, query) == [f"{recording.pod['metadata']['name']} {text}" for text in asked]
