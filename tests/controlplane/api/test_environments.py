"""Environments over HTTP: versions, containers, labels, archiving, and what never changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from .conftest import WS, opened

IMAGE = "nvcr.io/nvidia/tritonserver:24.08-py3"
ROUTE = {"port": 8000, "path": "/v2/health/live"}
INFERENCE = {"livenessRoute": ROUTE, "readinessRoute": {**ROUTE, "path": "/v2/health/ready"}, "scoringRoute": ROUTE}
ENVIRONMENTS = f"{WS}/environments"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One for all tests of this file, each of which has names of its own."""
    with opened(tmp_path_factory.mktemp("environments") / "home") as world:
        yield world


def put(world: Any, name: str, version: str = "1", **properties: Any) -> Any:
    body = {"properties": {"image": IMAGE, "isAnonymous": False, "isArchived": False, **properties}}
    return world.client.put(f"{ENVIRONMENTS}/{name}/versions/{version}", json=body)


def names(world: Any, path: str) -> list[str]:
    return [item["name"] for item in world.client.get(f"{ENVIRONMENTS}{path}").json()["value"]]


def test_what_is_put_comes_back_with_all_that_clients_read(world: Any) -> None:
    sent = {"inferenceConfig": INFERENCE, "condaFile": "name: x\n", "tags": {"a": "1"}, "description": "d"}
    answer = put(world, "Shape", **sent)
    shown = answer.json()
    assert answer.status_code == 201
    assert (shown["id"], shown["name"]) == (f"{ENVIRONMENTS}/Shape/versions/1", "1")
    wanted = {**sent, "image": IMAGE, "osType": "Linux", "properties": {}, "isAnonymous": False, "isArchived": False}
    assert shown["properties"] == wanted
    assert shown["systemData"]["createdAt"] == shown["systemData"]["lastModifiedAt"]
    assert world.client.get(f"{ENVIRONMENTS}/shape/versions/1").json() == shown
    assert world.client.put(shown["id"], json=shown).json() == shown


@pytest.mark.parametrize(
    ("properties", "status"),
    [
        ({}, 200),
        ({"osType": "linux"}, 200),
        ({"tags": {"a": "2"}, "description": "other", "isArchived": True}, 200),
        ({"image": "nvcr.io/nvidia/tritonserver:25.01-py3"}, 409),
        ({"condaFile": "name: y\n"}, 409),
        ({"inferenceConfig": INFERENCE}, 409),
    ],
)
def test_a_versions_content_never_changes(world: Any, properties: dict[str, Any], status: int) -> None:
    put(world, "fixed", tags={"a": "1"})
    answer = put(world, "fixed", **properties)
    assert answer.status_code == status, answer.text
    shown = world.client.get(f"{ENVIRONMENTS}/fixed/versions/1").json()["properties"]
    assert (shown["image"], "condaFile" in shown) == (IMAGE, False)
    if status == 200:
        assert (shown["tags"], shown["isArchived"]) == (properties.get("tags", {}), properties.get("isArchived", False))


def test_the_label_latest_and_the_next_version(world: Any) -> None:
    """(h) 14: newest by creation, asked for by $orderBy and $top; without a version the SDK reads
    the container."""
    assert world.client.get(f"{ENVIRONMENTS}/counted").status_code == 404
    assert names(world, "/counted/versions") == []
    for version in ("10", "2", "1.0"):
        put(world, "counted", version)
    newest = "/counted/versions?$orderBy=createdtime%20desc&$top=1"
    assert names(world, newest) == ["1.0"]
    assert names(world, "/counted/versions?$orderBy=createdtime asc") == ["10", "2", "1.0"]
    put(world, "counted", "1.0", isArchived=True)
    assert names(world, newest) == ["2"]
    shown = world.client.get(f"{ENVIRONMENTS}/counted").json()["properties"]
    assert (shown["latestVersion"], shown["nextVersion"]) == ("1.0", "11")


def test_archived_versions_and_environments_are_listed_when_asked_for(world: Any) -> None:
    put(world, "old")
    put(world, "old", "2", isArchived=True)
    views = {"ActiveOnly": ["1"], "ArchivedOnly": ["2"], "All": ["2", "1"]}
    for view, versions in views.items():
        assert names(world, f"/old/versions?listViewType={view}") == versions
    container = {"properties": {"tags": {"a": "b"}, "properties": {}, "isArchived": True}}
    shown = world.client.put(f"{ENVIRONMENTS}/old", json=container).json()
    assert (shown["properties"]["isArchived"], shown["properties"]["tags"]) == (True, {"a": "b"})
    assert "old" not in names(world, "") and "old" in names(world, "?listViewType=ArchivedOnly")
    assert world.client.put(f"{ENVIRONMENTS}/none", json=container).status_code == 404


def test_anonymous_ones_are_found_but_not_listed(world: Any) -> None:
    assert put(world, "CliV2AnonymousEnvironment", "f2b88ecb", isAnonymous=True).status_code == 201
    assert world.client.get(f"{ENVIRONMENTS}/CliV2AnonymousEnvironment/versions/f2b88ecb").status_code == 200
    assert "CliV2AnonymousEnvironment" not in names(world, "?listViewType=All")
    assert names(world, "/CliV2AnonymousEnvironment/versions") == []


def test_pages_link_to_the_next(world: Any) -> None:
    for number in range(1, 6):
        put(world, "paged", str(number))
    url, found = f"{ENVIRONMENTS}/paged/versions?$top=2&api-version=x", []
    while url:
        page = world.client.get(url).json()
        found.append([item["name"] for item in page["value"]])
        url = page.get("nextLink")
        assert url is None or (url.startswith("https://") and "api-version=x" in url)
    assert found == [["5", "4"], ["3", "2"], ["1"]]


@pytest.mark.parametrize(
    ("name", "properties", "code", "says"),
    [
        ("e", {"image": None}, "InvalidDocument", "image: required, but missing"),
        ("e", {"image": None, "build": {"contextUri": "https://x/y"}}, "Unsupported", "this server builds no images"),
        ("e", {"build": {"contextUri": "https://x/y"}}, "InvalidDocument", "image: not allowed together with build"),
        ("e", {"osType": "Windows"}, "Unsupported", "this server runs Linux containers only"),
        ("e", {"osType": "Plan9"}, "InvalidDocument", "os_type"),
        ("e", {"inferenceConfig": {"livenessRoute": ROUTE}}, "InvalidDocument", "readiness_route"),
        ("e", {"inferenceConfig": {**INFERENCE, "scoringRoute": {"port": 0, "path": "/"}}}, "InvalidDocument", "port"),
        ("e", {"imgae": "x"}, "BadArgument", "unknown property"),
        ("e", {"isArchived": "yes"}, "BadArgument", "isArchived"),
        ("e!", {}, "InvalidDocument", "name"),
    ],
)
def test_what_is_refused(world: Any, name: str, properties: dict[str, Any], code: str, says: str) -> None:
    answer = put(world, name, **properties)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)
    assert says in answer.text
    assert world.client.get(f"{ENVIRONMENTS}/{name}").status_code == 404


def test_versions_are_deleted_one_by_one_or_all_at_once(world: Any) -> None:
    for version in ("1", "2", "3"):
        assert put(world, "gone", version).status_code == 201
    deleted = [world.client.delete(f"{ENVIRONMENTS}/Gone/versions/2").status_code for _ in range(2)]
    assert (deleted, names(world, "/gone/versions")) == ([200, 204], ["3", "1"])
    assert [world.client.delete(f"{ENVIRONMENTS}/gone").status_code for _ in range(2)] == [200, 204]
    assert world.client.get(f"{ENVIRONMENTS}/gone").status_code == 404
