"""Versions and containers of environments, on each database."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from amphitrite.controlplane.store.assets.environment_store import EnvironmentStore
from amphitrite.controlplane.store.state.database import SqlStore
from amphitrite.schemas.errors import Error

ROUTES = {"liveness_route": {"port": 8000, "path": "/v2/health/live"}}
CONTENT = {"image": "triton:1", "inference_config": ROUTES}


@pytest.fixture
def environments(store: SqlStore) -> EnvironmentStore:
    return EnvironmentStore(store.database)


def refusal(call: Callable[[], Any]) -> Error:
    with pytest.raises(Error) as caught:
        call()
    return caught.value


def test_a_life(environments: EnvironmentStore) -> None:
    """One test for what does not depend on another, as each database costs its making."""

    def put(name: str, version: str, now: float = 1.0, flags: dict[str, bool] | None = None, **document: Any) -> Any:
        values = {"name": name, "version": version, **CONTENT, **document}
        return environments.put_version(name, version, values, now=now, **(flags or {}))

    first, created = put("Triton", "2", description="d")
    assert created and (first.name, first.version, first.created_at) == ("Triton", "2", 1.0)
    assert environments.get_version("TRITON", "2") == first
    # What describes it may change, and then says only what was said last; what it is may not.
    changed, created = put("triton", "2", now=2.0, tags={"a": "b"}, os_type="linux")
    assert (created, changed.document.get("description"), changed.document["tags"]) == (False, None, {"a": "b"})
    assert (changed.created_at, changed.modified_at) == (1.0, 2.0)
    for other in ({"image": "triton:2"}, {"conda_file": "x"}, {"inference_config": {}}, {"os_type": "windows"}):
        error = refusal(lambda other=other: put("triton", "2", **other))
        assert (error.code, error.target) == ("Conflict", next(iter(other)))
    # Order of creation, not of numbers; archived and anonymous ones apart.
    put("triton", "10", now=3.0)
    put("triton", "1.0", now=3.0)
    put("hashed", "f2b8", flags={"is_anonymous": True})
    put("other", "1")
    assert [v.version for v in environments.list_versions("Triton")] == ["1.0", "10", "2"]
    assert environments.latest("triton").version == "1.0"
    put("triton", "1.0", flags={"is_archived": True})
    assert environments.latest("triton").version == "10"
    assert [v.version for v in environments.list_versions("triton", "ArchivedOnly")] == ["1.0"]
    assert [v.version for v in environments.list_versions("triton", "All", "createdtime asc")] == ["2", "10", "1.0"]
    assert environments.get_version("hashed", "f2b8").is_anonymous and environments.list_versions("hashed") == []
    listed = environments.list_environments()
    assert [(c.name, c.latest_version, c.next_version) for c in listed] == [
        ("other", "1", "2"),
        ("Triton", "1.0", "11"),
    ]
    assert [c.name for c in environments.list_environments("All", 1, 1)] == ["Triton"]
    assert environments.list_environments("All", 5, 1) == []
    # All versions together.
    archived = environments.set_container_archived("TRITON", True, tags={"x": "y"}, now=9.0)
    assert (archived.is_archived, archived.tags, archived.modified_at) == (True, {"x": "y"}, 9.0)
    assert environments.list_versions("triton") == []
    assert [c.name for c in environments.list_environments("ArchivedOnly")] == ["Triton"]
    assert environments.set_container_archived("triton", False, now=9.0).tags == {"x": "y"}
    for call in (
        lambda: environments.get_version("triton", "3"),
        lambda: environments.latest("none"),
        lambda: environments.get_container("none"),
        lambda: environments.set_container_archived("none", True, now=1.0),
    ):
        assert refusal(call).code == "ResourceNotFound"
