"""Moving what a control plane keeps: to another database, into a file, out of it. On SQLite and
PostgreSQL.

The verbs run in this process, as ``python -m amphitrite.controlplane.transfer`` runs them.
"""

from __future__ import annotations

import fcntl
import json
import stat
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import make_url, select

from amphitrite.controlplane.core.desired.compute_clusters import Compute
from amphitrite.controlplane.core.desired.resources import stored_model
from amphitrite.controlplane.core.history.traffic_history import Traffic
from amphitrite.controlplane.core.observed.status import Ref, Status
from amphitrite.controlplane.core.planning.key_rotation import SigningKey
from amphitrite.controlplane.core.rollouts import rollout_plan, traffic_rollout
from amphitrite.controlplane.core.scaling.scales import Scale, ScaleChange, ScaleEvent
from amphitrite.controlplane.settings.home import Home
from amphitrite.controlplane.store.assets.code_store import CodeStore
from amphitrite.controlplane.store.assets.environment_store import EnvironmentStore
from amphitrite.controlplane.store.assets.model_store import ModelStore
from amphitrite.controlplane.store.content.directory_content import ContentDirectory
from amphitrite.controlplane.store.reports.key_uses import KeyUses
from amphitrite.controlplane.store.sql.transactions import CONTROL_PLANE
from amphitrite.controlplane.store.state import row_transfer
from amphitrite.controlplane.store.state.database import SqlStore, open_store
from amphitrite.controlplane.transfer import __main__, archive
from amphitrite.dataplane.table.routing_table import RoutingTable, Secret
from amphitrite.schemas.errors import Error

from ... import postgresql

KINDS = ("sqlite", "postgresql")
ALWAYS: Any = {"if_match": None, "if_none_match": False, "now": 1.0}
Databases = Callable[[str, str], str]
Run = Callable[..., dict[str, Any]]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "home")
    made.create()
    made.lock_file.touch()  # As every home has it in which a control plane once ran.
    (made.credentials / "token").write_text("secret-token\n")
    (made.certificates / "ca.key").write_text("secret-key\n")
    (made.certificates / ".ca.key.half").write_text("half")
    return made


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Databases]:
    """database(kind, name) -> URL of an empty one."""
    with ExitStack() as stack:

        def make(kind: str, name: str) -> str:
            if kind == "postgresql":
                return stack.enter_context(postgresql.database())
            return f"sqlite:///{tmp_path}/{name}/amphitrite.db"

        yield make


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """run(home, verb, words..., database=URL) -> what it answered; raises the Error that it
    printed."""

    def without_password(word: str) -> str:
        if "://" not in word or not (password := make_url(word).password):
            return word
        monkeypatch.setenv("PGPASSWORD", str(password))
        return make_url(word)._replace(password=None).render_as_string()

    def call(home: Home, verb: str, *words: str, database: str | None = None) -> dict[str, Any]:
        if database is not None:
            monkeypatch.setenv("ML_DATABASE_URL", database)
        code = __main__.main([verb, "--home", str(home.root), *map(without_password, words)])
        said = capsys.readouterr()
        if code:
            raise Error.from_body(json.loads(said.err.removeprefix("amphitrite-error: ")))
        answer: dict[str, Any] = json.loads(said.out)
        return answer

    return call


def fill(url: str, home: Home) -> Any:
    """Something in every table that lasts; what is kept."""
    store = open_store(url)
    models = ModelStore(store.database, ContentDirectory(home.models, time.time), home.models)
    for number in range(3):
        with models.blobs.begin() as body:
            body.write(b"weights" * (number + 1) * 100_000)
            digest, size = body.finish()
        models.blobs.put(f"LocalUpload/a/r/m{number}/1/model.onnx", digest, size, overwrite=False)
    address = "azureml://datastores/workspaceblobstore/paths/LocalUpload/a/r"
    models.put_version("m", "1", {"type": "triton_model", "path": address}, now=1.0)
    EnvironmentStore(store.database).put_version("e", "1", {"image": "triton"}, now=1.0)
    CodeStore(store.database, models.blobs).put_version("c", "1", {"name": "c"}, "LocalUpload/a/r", hash=None, now=1.0)
    store.put_compute(Compute("cluster", "ns", Secret("the kubeconfig")), now=1.0)
    store.put_endpoint({"name": "gone"}, **ALWAYS)
    store.delete(Ref("gone"), if_match=None, now=1.0)
    store.remove([Ref("gone")], now=1.0)
    store.put_endpoint({"name": "ep1", "tags": {"ä": "\u4e16\u0000"}}, **ALWAYS)
    store.put_deployment("ep1", {"name": "blue", "instance_type": "x"}, models.reference("m", "1"), **ALWAYS)
    event = ScaleEvent(1.0, 1, 2, "more", "rule")
    store.set_scale(ScaleChange(Ref("ep1", "blue"), None, Scale(2, "rule"), event))
    plan = rollout_plan.make("green", {}, Traffic({"blue": 100}, {}), None, ("blue", "green"), ())
    store.start_rollout(traffic_rollout.begin("ep1", plan, 1.0))
    body = {"location": "here", "tags": {}, "properties": {"enabled": True}}
    store.autoscale_settings.put("as", ("ep1", "blue"), body, if_match=None, if_none_match=False, now=1.0)
    failed = Status("Failed", 1, "Failed", "m", Error("ResourceNotReady", "no"))
    store.record({Ref("ep1", "blue"): failed}, now=2.0)
    store.change_signing_keys([SigningKey("k", Secret("a private key"), 1.0)], [])
    KeyUses(store.database).put({("ep1", "token"): 60.0}, 60.0)
    store.publish(RoutingTable(0))
    kept = rows_of(store)
    store.close()
    return kept


def rows_of(store: SqlStore) -> Any:
    with store.database.read() as connection:
        return {
            table.name: [dict(row) for row in row_transfer.rows(connection, table)] for table in row_transfer.TABLES
        }  # fmt: skip


def kept_in(url: str) -> Any:
    store = open_store(url)
    try:
        return rows_of(store)
    finally:
        store.close()


@pytest.mark.parametrize(("source", "target"), [(one, other) for one in KINDS for other in KINDS])
def test_every_row_moves(home: Home, database: Databases, run: Run, source: str, target: str) -> None:
    old, new = database(source, "old"), database(target, "new")
    before = fill(old, home)
    assert all(before[table.name] for table in row_transfer.TABLES if table.name != "blocks")
    answer = run(home, "migrate", "--from", old, "--to", new)
    assert answer["rows"] == {name: len(rows) for name, rows in before.items()}
    assert kept_in(new) == kept_in(old) == before
    with pytest.raises(Error, match="is not empty: it has rows") as caught:
        run(home, "migrate", "--from", old, "--to", new)
    assert caught.value.code == "Conflict"


@pytest.mark.postgresql
def test_deployments_and_content_move_along(home: Home, database: Databases, run: Run, tmp_path: Path) -> None:
    old, new = database("sqlite", "old"), database("postgresql", "new")
    fill(old, home)
    places = ["--models-from", f"file://{home.models}", "--models-to", f"file://{tmp_path}/elsewhere"]
    answer = run(home, "migrate", "--from", old, "--to", new, *places, "--compute", "kubernetes")
    assert answer["files"] == 3
    there, here = (ContentDirectory(place, time.time) for place in (tmp_path / "elsewhere", home.models))
    assert set(there.digests()) == set(here.digests())
    store = open_store(new)
    (deployment,) = store.load_world().deployments
    assert deployment.workload.compute == "kubernetes"
    assert deployment.workload.model == stored_model(_reference(store))[0]
    store.close()


def _reference(store: SqlStore) -> dict[str, Any]:
    with store.database.read() as connection:
        (row,) = connection.execute(select(row_transfer.deployments.c.model)).all()
    return dict(row.model)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_moves_while_a_control_plane_runs(home: Home, database: Databases, run: Run, kind: str) -> None:
    old, new = database(kind, "old"), database(kind, "new")
    fill(old, home)
    running = open_store(old)
    with running.database.hold_named_lock(CONTROL_PLANE), pytest.raises(Error) as caught:
        run(home, "migrate", "--from", old, "--to", new)
    assert caught.value.code == "Conflict"
    if kind == "postgresql":  # In a cluster nobody is alone: its connections tell of it.
        running.list_endpoints()
        with pytest.raises(Error, match="other programs of amphitrite are connected"):
            run(home, "migrate", "--from", old, "--to", new)
    running.close()
    with open(home.lock_file, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(Error, match=r"a control plane of .* is running"):
            run(home, "migrate", "--from", old, "--to", new)
    assert all(rows == [] for rows in kept_in(new).values())


@pytest.mark.postgresql
@pytest.mark.parametrize(
    ("source", "code", "message"),
    [
        ("sqlite:////no/such/file", "BadArgument", "the file /no/such/file does not exist"),
        ("{empty}", "BadArgument", "not a database of amphitrite"),
    ],
)
def test_a_source_must_be_ours(home: Home, database: Databases, run: Run, source: str, code: str, message: str) -> None:
    empty = database("postgresql", "empty")
    with pytest.raises(Error, match=message) as caught:
        run(home, "migrate", "--from", source.format(empty=empty), "--to", database("sqlite", "new"))
    assert caught.value.code == code


@pytest.mark.postgresql
def test_a_target_of_somebody_elses_is_left_alone(home: Home, database: Databases, run: Run) -> None:
    old, theirs = database("sqlite", "old"), database("postgresql", "theirs")
    fill(old, home)
    with postgresql.connect(theirs) as connection:
        connection.execute("CREATE TABLE invoices (id int)")
    with pytest.raises(Error, match="tables of another program"):
        run(home, "migrate", "--from", old, "--to", theirs)
    with postgresql.connect(theirs) as connection:
        found = connection.execute("SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'")
        assert found.fetchall() == [("invoices",)]


@pytest.mark.parametrize(("source", "target"), [("sqlite", "postgresql"), ("postgresql", "sqlite")])
def test_a_backup_is_gone_on_from(
    home: Home, database: Databases, run: Run, tmp_path: Path, source: str, target: str
) -> None:
    old, new, file = database(source, "old"), database(target, "new"), tmp_path / "backup.tar"
    before = fill(old, home)
    running = open_store(old)
    with running.database.hold_named_lock(CONTROL_PLANE):  # A control plane may run.
        answer = run(home, "backup", str(file), database=old)
    running.close()
    assert (answer["content"], answer["left_out"], answer["database"]) == ("included", [], source)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    fresh = Home(tmp_path / "fresh")
    restored = run(fresh, "restore", str(file), database=new)
    assert restored["rows"] == answer["rows"] == {n: len(r) for n, r in before.items() if n != "blocks"}
    assert kept_in(new) == before
    assert set(ContentDirectory(fresh.models, time.time).digests()) == {row["digest"] for row in before["blobs"]}
    for path in ("credentials/token", "certificates/ca.key"):
        assert (fresh.root / path).read_text() == (home.root / path).read_text()
        assert stat.S_IMODE((fresh.root / path).stat().st_mode) == 0o600
    assert not list(fresh.certificates.glob(".*"))


def test_a_restore_that_was_broken_off_is_begun_again(
    home: Home, database: Databases, run: Run, tmp_path: Path
) -> None:
    """Everything but the rows is there, which come last."""
    old, file = database("sqlite", "old"), tmp_path / "backup.tar"
    before = fill(old, home)
    run(home, "backup", str(file), database=old)
    new = database("sqlite", "new")
    run(home, "restore", str(file), database=new)
    assert kept_in(new) == before
    (home.credentials / "token").write_text("another\n")
    with pytest.raises(Error, match="has a different credentials/token") as caught:
        run(home, "restore", str(file), database=database("sqlite", "newer"))
    assert caught.value.code == "Conflict"
    (home.credentials / "token").write_text("secret-token\n")
    with pytest.raises(Error, match="is not empty: it has rows"):
        run(home, "restore", str(file), database=new)


def test_content_in_an_object_store_stays_there_and_that_is_said(
    home: Home, database: Databases, run: Run, tmp_path: Path
) -> None:
    old, file = database("sqlite", "old"), tmp_path / "backup.tar"
    fill(old, home)
    answer = run(home, "backup", "--models", "s3://bucket/prefix", str(file), database=old)
    assert answer["content"] == "s3://bucket/prefix"
    assert answer["left_out"] == ["the content of models stays in s3://bucket/prefix"]
    with tarfile.open(file) as tar:
        assert not [name for name in tar.getnames() if name.startswith("models/")]


def change_a_byte(path: Path) -> None:
    path.chmod(0o644)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def test_what_is_damaged_is_not_backed_up(home: Home, database: Databases, run: Run, tmp_path: Path) -> None:
    old, file = database("sqlite", "old"), tmp_path / "into" / "backup.tar"
    fill(old, home)
    file.parent.mkdir()
    content = ContentDirectory(home.models, time.time)
    digest = next(content.digests())
    good = content.path(digest).read_bytes()
    change_a_byte(content.path(digest))
    with pytest.raises(Error, match="is damaged: its SHA-256 is not") as caught:
        run(home, "backup", str(file), database=old)
    assert caught.value.code == "DamagedContent" and list(file.parent.iterdir()) == []
    content.path(digest).write_bytes(good)
    path = Path(old.removeprefix("sqlite:///"))
    path.write_bytes(path.read_bytes().replace(b'{"name": "ep1"', b'{"nane": "ep1"', 1))
    with pytest.raises(Error, match="missing from index copy_of_endpoints") as caught:
        run(home, "backup", str(file), database=old)
    assert caught.value.code == "DamagedContent" and list(file.parent.iterdir()) == []


def test_content_that_was_backed_up_damaged_is_not_restored(
    home: Home, database: Databases, run: Run, tmp_path: Path
) -> None:
    """As releases without the test above made such a backup."""
    file, digest = tmp_path / "backup.tar", "ab" * 32
    with archive.create(file, lambda: {"format": 1, "revision": "0001"}) as writer:
        writer.add_bytes(f"models/{digest}", b"something else")
    with pytest.raises(Error, match="is not what its name says") as caught:
        run(Home(tmp_path / "new"), "restore", str(file), database=database("sqlite", "new"))
    assert caught.value.code == "LocalFileError"


def test_a_backup_overwrites_nothing_and_leaves_nothing_half(
    home: Home, database: Databases, run: Run, tmp_path: Path
) -> None:
    old, file = database("sqlite", "old"), tmp_path / "into" / "backup.tar"
    fill(old, home)
    file.parent.mkdir()
    (lost, *_) = ContentDirectory(home.models, time.time).digests()
    where = ContentDirectory(home.models, time.time).path(lost)
    data_there = where.read_bytes()
    where.unlink()
    with pytest.raises(Error, match=f"the content {lost} is not in"):
        run(home, "backup", str(file), database=old)
    assert list(file.parent.iterdir()) == []
    where.write_bytes(data_there)
    run(home, "backup", str(file), database=old)
    with pytest.raises(Error, match="already exists"):
        run(home, "backup", str(file), database=old)
    assert list(file.parent.iterdir()) == [file]


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def flip(file: Path) -> None:
    file.write_bytes(file.read_bytes().replace(b"weightsweights", b"weightsWeights", 1))


def replace(file: Path) -> None:
    file.write_bytes(b"not a tar" * 1000)


@pytest.mark.parametrize("damage", [cut, flip, replace])
def test_what_is_damaged_is_refused_before_anything_changes(
    home: Home, database: Databases, run: Run, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    old, new, file = database("sqlite", "old"), database("sqlite", "new"), tmp_path / "backup.tar"
    fill(old, home)
    run(home, "backup", str(file), database=old)
    damage(file)
    fresh = Home(tmp_path / "fresh")
    with pytest.raises(Error, match="damaged") as caught:
        run(fresh, "restore", str(file), database=new)
    assert caught.value.code == "LocalFileError"
    assert not fresh.root.exists()


def test_a_newer_versions_backup_is_refused(home: Home, database: Databases, run: Run, tmp_path: Path) -> None:
    from amphitrite.controlplane.transfer import archive

    file = tmp_path / "backup.tar"
    with archive.create(file, lambda: {"format": 1, "revision": "9999", "version": "9.9"}):
        pass
    with pytest.raises(Error, match=r"made by version 9\.9") as caught:
        run(Home(tmp_path / "fresh"), "restore", str(file), database=database("sqlite", "new"))
    assert caught.value.code == "Unsupported"
