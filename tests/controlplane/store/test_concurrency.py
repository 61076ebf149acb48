"""Many threads on one store: nobody waits in vain, nothing is lost."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from amphitrite.controlplane.core.observed.status import Ref, Status
from amphitrite.controlplane.store.assets.model_store import ModelStore
from amphitrite.controlplane.store.sql.transactions import Database
from amphitrite.controlplane.store.state.database import SqlStore
from amphitrite.schemas.errors import Error

WRITERS, CHANGES = 12, 8


def test_parallel_changes_all_count(store: SqlStore) -> None:
    """Writers of the same and of other endpoints, with the reconciler beside them."""
    done = threading.Event()

    def write(writer: int) -> None:
        for change in range(CHANGES):
            document = {"name": f"ep{writer % 3}", "description": f"{writer}/{change}"}
            store.put_endpoint(document, if_match=None, if_none_match=False, now=1.0)

    def reconcile() -> int:
        passes = 0
        while not done.is_set():
            world = store.load_world()
            store.record({Ref(e.name): Status("Succeeded", e.generation) for e in world.endpoints}, now=2.0)
            store.publish(world.table)
            passes += 1
        return passes

    with ThreadPoolExecutor(WRITERS + 1) as pool:
        reconciler = pool.submit(reconcile)
        for writer in [pool.submit(write, number) for number in range(WRITERS)]:
            writer.result()
        done.set()
        assert reconciler.result() > 0
    assert {r.generation for r in store.list_endpoints()} == {WRITERS // 3 * CHANGES}


def test_only_one_of_many_creates(store: SqlStore) -> None:
    def create(number: int) -> str:
        try:
            store.put_endpoint({"name": "ep1", "n": number}, if_match=None, if_none_match=True, now=1.0)
        except Error as error:
            return error.code
        return "created"

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(create, range(16)))
    assert sorted(answers) == ["PreconditionFailed"] * 15 + ["created"]


def test_another_process_with_the_lock_is_waited_for(store: SqlStore) -> None:
    other = Database(store.database.url)  # A lock of its own, as another process has.
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with other.write():
            entered.set()
            leave.wait(60)

    with ThreadPoolExecutor(2) as pool:
        holder = pool.submit(hold)
        assert entered.wait(60)
        assert store.list_endpoints() == []  # Readers do not wait.
        writer = pool.submit(store.put_endpoint, {"name": "ep1"}, if_match=None, if_none_match=False, now=1.0)
        leave.set()
        holder.result()
        assert writer.result()[0].generation == 1
    other.close()


def test_parallel_uploads_of_the_same_content(models: ModelStore, upload: Any, tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda n: upload(f"p{n % 20}", b"x" * 5000, overwrite=True), range(60)))
    assert len({blob.digest for blob in found}) == 1
    assert len(models.blobs.list().blobs) == 20
    assert list((tmp_path / "models" / "temporary").iterdir()) == []
