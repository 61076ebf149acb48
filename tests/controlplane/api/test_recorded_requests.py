"""What Azure's own SDK sent when it was watched: every request is answered with the recorded class
of status, and every field that the SDK cannot do without is there.

``data/requests.jsonl``: in the order in which they were sent, contents of files shortened.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

REQUESTS = [json.loads(line) for line in (Path(__file__).parent / "data" / "requests.jsonl").read_text().splitlines()]

#: kind of resource -> paths of fields without which the SDK breaks off; the last one's value must
#: have the given type.
NEEDED: dict[str, list[tuple[str, type]]] = {
    "workspace": [("location", str)],
    "datastore": [("properties.datastoreType", str), ("properties.credentials.credentialsType", str)],
    "model": [("id", str), ("name", str), ("properties.flavors", dict), ("properties.modelUri", str)],
    "environment": [("id", str), ("name", str), ("properties.image", str), ("properties.osType", str)],
    "container": [("id", str), ("name", str), ("properties.nextVersion", str)],
    "endpoint": [
        *(("id", str), ("name", str), ("location", str), ("kind", str), ("properties.properties", dict)),
        *(("properties.scoringUri", str), ("properties.provisioningState", str), ("properties.authMode", str)),
    ],
    "deployment": [
        *(("id", str), ("sku.name", str), ("sku.capacity", int), ("properties.endpointComputeType", str)),
        *(("properties.scaleSettings.scaleType", str), ("properties.provisioningState", str)),
        *(("properties.model", str), ("properties.requestSettings", dict), ("properties.livenessProbe", dict)),
    ],
    "operation": [("id", str), ("status", str), ("startTime", str)],
}
WITHOUT_SYSTEM_DATA = {"workspace", "datastore", "operation"}


def test_recorded_requests(recorded: Any) -> None:
    operation, failures = "", []
    for index, request in enumerate(REQUESTS):
        body = request["body"]
        content = body.encode() if isinstance(body, str) else json.dumps(body).encode() if body else None
        path = request["path"].replace("{operation}", operation)
        answer = recorded.client.request(
            request["method"], f"{path}?{request['query']}", content=content, headers=request["headers"]
        )
        where = f"{index}: {request['method']} {request['path']}"
        if answer.status_code // 100 != request["status"] // 100:
            failures.append(f"{where}: {answer.status_code} instead of {request['status']}: {answer.text}")
        elif request["kind"]:
            failures += [f"{where}: {problem}" for problem in missing(request["kind"], answer.json())]
        if address := answer.headers.get("Azure-AsyncOperation"):
            operation = address.split("/")[-1].split("?")[0]
            recorded.settle()
    assert failures == []


def missing(kind: str, answer: dict[str, Any]) -> list[str]:
    """Fields that are not there, null, or of another type; a list is as good as its items."""
    needed = list(NEEDED[kind])
    if kind not in WITHOUT_SYSTEM_DATA:
        needed += [("systemData.createdAt", str), ("systemData.lastModifiedAt", str)]
    return [
        f"{path} is {value!r}"
        for item in answer.get("value", [answer])
        for path, wanted in needed
        if not isinstance(value := at(item, path), wanted)
    ]


def at(value: Any, path: str) -> Any:
    for step in path.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return value
