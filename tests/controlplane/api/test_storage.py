"""What takes space, and what goes when an operator says so, over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from amphitrite.controlplane.reconciliation.maintenance import Maintenance

from .conftest import WS

DAY = 24 * 3600.0


def row(world: Any, name: str) -> dict[str, Any]:
    (found,) = [one for one in world.client.get("/maintenance/v1/storage").json()["rows"] if one["name"] == name]
    return found


def test_versions_say_who_uses_them_and_when_they_were_last_used(ready: Any) -> None:
    ready.model(version="2")
    one, two = ready.client.get("/maintenance/v1/storage").json()["models"]
    assert (one["version"], one["usedBy"], one["lastUsed"]) == ("1", ["ep1/blue"], "2027-01-15T08:00:00+00:00")
    assert (two["version"], two["usedBy"], two["lastUsed"], two["files"]) == ("2", [], None, 1)
    ready.now[0] += 60
    assert ready.deployment(model=f"{WS}/models/m/versions/2").status_code == 200
    ready.now[0] += 3600
    one, two = ready.client.get("/maintenance/v1/storage").json()["models"]
    assert (one["usedBy"], one["lastUsed"]) == ([], "2027-01-15T08:01:00+00:00")
    assert (two["usedBy"], two["lastUsed"]) == (["ep1/blue"], "2027-01-15T09:01:00+00:00")


def test_rows_count_files_once_and_everything_of_the_home(world: Any, tmp_path: Path) -> None:
    world.model(version="1")
    world.model(version="2")
    world.upload("other", ("a", "bb"))
    (tmp_path / "home" / "logs" / "controlplane.log").write_bytes(b"x" * 100)
    (tmp_path / "home" / "models" / "temporary" / "part").write_bytes(b"x" * 7)
    rows = {
        one["name"]: (one["files"], one["size"]) for one in world.client.get("/maintenance/v1/storage").json()["rows"]
    }
    assert rows["model files"] == (1, len("model_1/1/model.onnx"))
    assert rows["uploads without a version"] == (2, 3)
    assert rows["unfinished uploads"] == (1, 7)
    assert rows["logs"] == (1, 100)
    assert rows["database"][1] > 10_000
    assert {"repositories", "instances", "backends", "compiled backends", "other"} <= rows.keys()


def test_prune_deletes_what_is_old_and_says_what_it_keeps(ready: Any) -> None:
    ready.upload("old", ("a", "bb"))
    # Uploads carry the time of the real clock.
    ready.now[0] = ready.services.blobs.head("LocalUpload/old/models/a").modified_at
    said = ready.client.post("/maintenance/v1/prune").json()
    assert (said["freed"], said["size"], said["kept"]) == ([], 0, {"files": 2, "size": 3, "olderThan": DAY})
    ready.now[0] += 3601
    said = ready.client.post("/maintenance/v1/prune?dryRun=true&olderThan=3600").json()
    assert (said["dryRun"], said["freed"]) == (True, [{"name": "model files", "files": 2, "size": 3}])
    assert row(ready, "uploads without a version")["size"] == 3
    said = ready.client.post("/maintenance/v1/prune?olderThan=3600").json()
    assert (said["dryRun"], said["size"], said["kept"]["files"]) == (False, 3, 0)
    assert row(ready, "uploads without a version")["files"] == 0
    assert row(ready, "model files")["files"] == 1


@pytest.mark.parametrize("age", ["3599", "-1", "soon"])
def test_nobody_prunes_uploads_that_may_be_under_way(world: Any, age: str) -> None:
    assert world.client.post(f"/maintenance/v1/prune?olderThan={age}").status_code == 400


def test_the_hourly_upkeep_notes_what_is_in_use(ready: Any) -> None:
    ready.model(version="2")
    ready.now[0] += 7200
    Maintenance(ready.store, ready.services.models, ready.runtime).collect(ready.now[0])
    noted = {one.version: one.used_at for one in ready.services.models.list_all()}
    assert noted == {"1": ready.now[0], "2": None}
