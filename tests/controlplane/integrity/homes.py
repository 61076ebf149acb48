"""A home with something of each kind in it, as a control plane on one machine leaves it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from amphitrite.controlplane.auth import certificates, credentials
from amphitrite.controlplane.core.desired.resources import ModelReference, Probe, WorkloadSpec
from amphitrite.controlplane.core.planning.key_rotation import SigningKey
from amphitrite.controlplane.process import server_file
from amphitrite.controlplane.runtimes.local import instance_records
from amphitrite.controlplane.runtimes.local.instance_records import InstanceRecord
from amphitrite.controlplane.settings import settings
from amphitrite.controlplane.settings.home import Home
from amphitrite.controlplane.settings.settings import Settings
from amphitrite.controlplane.store.assets.model_store import ModelStore
from amphitrite.controlplane.store.content.content_store import open_content
from amphitrite.controlplane.store.sql.tables import metadata
from amphitrite.controlplane.store.state import row_transfer
from amphitrite.controlplane.store.state.database import open_store
from amphitrite.dataplane.machine import processes
from amphitrite.dataplane.table import saved_table
from amphitrite.dataplane.table.routing_table import RoutingTable, Secret
from amphitrite.dataplane.table.saved_table import SavedTable
from amphitrite.dataplane.table.text_codec import TableText

NEW: Any = {"if_match": None, "if_none_match": False, "now": 1.0}
FILES = {"m/1/model.onnx": bytes(range(256)) * 100, "m/config.pbtxt": b'name: "m"\n'}


def fill(root: Path, database_url: str | None = None) -> Settings:
    """What a control plane of ``root`` would be started with."""
    home = Home(root)
    home.create()
    chosen = settings.read({}, home=root, database_url=database_url)
    tls = certificates.ensure(home, ["127.0.0.1"], time.time())
    credentials.ensure(home)
    home.lock_file.touch()
    server_file.write(chosen, tls, "running", "on")
    store = open_store(chosen.database_url)
    try:
        models = ModelStore(store.database, open_content(chosen.models_url, home.models, time.time), home.models)
        for path, data in FILES.items():
            with models.blobs.begin() as body:
                body.write(data)
                models.blobs.put(f"LocalUpload/a/r/{path}", *body.finish(), overwrite=False)
        address = "azureml://datastores/workspaceblobstore/paths/LocalUpload/a/r"
        version, _ = models.put_version("m", "1", {"type": "triton_model", "path": address}, now=1.0)
        models.repository(version.digest)
        store.put_endpoint({"name": "ep1", "tags": {"team": "vision"}}, **NEW)
        store.put_deployment("ep1", {"name": "blue", "instance_type": "x"}, models.reference("m", "1"), **NEW)
        store.publish(RoutingTable(0))
        key = (home.certificates / "server.key").read_text()
        store.change_signing_keys([SigningKey("k", Secret(key), 1.0)], [])
    finally:
        store.close()
    saved_table.save(home.dataplane / "routing-table.json", SavedTable(RoutingTable(7), 7, 1.0), TableText())
    for name in ("agent", "envoy"):
        processes.write(home.dataplane / f"{name}.json", processes.own(), release="1")
    model = ModelReference("m", "1", version.digest, ("m",))
    workload = WorkloadSpec("ep1-blue-1", "ep1", "blue", model, "x")
    probe = Probe(1, 1, 1, 1, 1)
    (home.instances / "one").mkdir()
    instance_records.save(home.instances / "one", InstanceRecord("one", workload, 0, 1, probe, probe, 8001, 1.0))
    return chosen


def rows(database_url: str) -> dict[str, Any]:
    """Every row of every table. Raises what reading a damaged database raises."""
    store = open_store(database_url)
    try:
        with store.database.read() as connection:
            return {
                table.name: [dict(row) for row in row_transfer.rows(connection, table)]
                for table in metadata.sorted_tables
            }
    finally:
        store.close()
