"""A model whose code attacks: what it reaches of the machine, with isolation and without.

The model runs the Python code that it is sent, as the worst model would. Each row is one attack,
with what it says where instances are isolated, without the machine's network, and where isolation
is off: that shows that the attack is one. The table of ``docs/isolation.md`` is this one.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from amphitrite.controlplane.core.desired.resources import DEFAULT_INSTANCE_TYPE
from amphitrite.controlplane.runtimes.isolation import support
from amphitrite.controlplane.runtimes.local.instance_processes import shm_prefix

from ..waiting import wait_until
from .product import Product, running

FOUND = support.probe()
pytestmark = pytest.mark.serving

MODEL = '''"""{name}"""

import numpy
import triton_python_backend_utils as triton


class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            names = {{}}
            exec(triton.get_input_tensor_by_name(request, "code").as_numpy()[0].decode(), names)
            said = numpy.array([str(names.get("said")).encode()], dtype=object)
            answers.append(triton.InferenceResponse([triton.Tensor("said", said)]))
        return answers
'''
CONFIG = """backend: "python"
input { name: "code" data_type: TYPE_STRING dims: [1] }
output { name: "said" data_type: TYPE_STRING dims: [1] }
instance_group { count: 1 kind: KIND_CPU }
"""
#: What each attack begins with.
BEGIN = """
import ctypes, glob, os, pathlib, socket
HOME, VICTIM, SOCKET, API = pathlib.Path({home!r}), {pid}, {socket!r}, ("127.0.0.1", {port})
call = ctypes.CDLL(None, use_errno=True)
def tell(attack):
    try:
        return "reached" if attack() else "nothing there"
    except OSError as exc:
        return type(exc).__name__
said = tell(lambda: {attack})
"""
REACHED, ABSENT, NONE = "reached", "FileNotFoundError", "nothing there"
#: What is attacked -> how, and what is said with isolation and without (None: it is not tried, for
#: it would do harm, or the machine may forbid it anyway).
ATTACKS: dict[str, tuple[str, str, str | None]] = {
    "the server's token": ("(HOME / 'credentials' / 'token').read_text()", ABSENT, REACHED),
    "the authority's key": ("(HOME / 'certificates' / 'ca.key').read_text()", ABSENT, REACHED),
    "the database with all keys": ("(HOME / 'amphitrite.db').read_bytes()", ABSENT, REACHED),
    "variables of other deployments": (
        "[p for p in (HOME / 'instances').glob('*/instance.json') if 's3cr3t' in p.read_text()]",
        NONE,
        REACHED,
    ),
    "other models' files": (
        "[p for p in (HOME / 'models').rglob('model.py') if p.read_text().startswith('\"\"\"victim')]",
        NONE,
        REACHED,
    ),
    "to change other models' files": (
        "[os.chmod(p, 0o644) or open(p, 'a') for p in (HOME / 'models').rglob('model.py') "
        "if 'victim' in p.read_text()]",
        NONE,
        REACHED,
    ),
    "to change its own model's file": ("os.chmod(CODE, 0o644) or open(CODE, 'a')", "OSError", REACHED),
    "the user's files": ("(HOME.parent / 'files' / 'secret.txt').read_text()", ABSENT, REACHED),
    "other instances' shared memory": ("glob.glob('/dev/shm/*victim*')", NONE, REACHED),
    "other instances' environment": ("open(f'/proc/{VICTIM}/environ').read()", ABSENT, REACHED),
    "to signal other instances": ("os.kill(VICTIM, 0) or True", "ProcessLookupError", REACHED),
    "to trace other instances": ("call.ptrace(0x4206, VICTIM, 0, 0) == 0", NONE, None),
    "other instances' sockets": ("socket.socket(socket.AF_UNIX).connect(SOCKET) or True", ABSENT, REACHED),
    "the control plane's port": ("socket.create_connection(API)", "ConnectionRefusedError", REACHED),
    "a user namespace of its own": ("call.unshare(0x10000000) == 0", NONE, None),
    "a capability": ("int(open('/proc/self/status').read().split('CapBnd:')[1].split()[0], 16)", NONE, None),
}


@dataclass(frozen=True)
class Stage:
    """A product with the deployments ``hostile`` and ``victim``."""

    product: Product
    key: str
    isolated: bool

    def record(self, deployment: str) -> dict[str, object]:
        (file,) = self.product.home.glob(f"instances/cats-{deployment}-*/instance.json")
        found: dict[str, object] = json.loads(file.read_text())
        return found

    def attack(self, what: str) -> str:
        victim, own = self.record("victim"), self.record("hostile")
        process = victim["process"]
        assert isinstance(process, dict)
        code = BEGIN.format(
            home=str(self.product.home),
            pid=process["pid"],
            socket=str(next(iter(sorted(os.scandir(str(victim["sockets"])), key=lambda one: one.name))).path),
            port=self.product.port,
            attack=what,
        )
        repository = self.product.home / "models" / "repositories" / own["workload"]["model"]["digest"]  # type: ignore[index]
        if not self.isolated:
            repository = self.product.home / "instances" / str(own["id"]) / "model-files"
        return self.run(f"CODE = {str(repository / 'hostile' / '1' / 'model.py')!r}\n{code}")

    def run(self, code: str) -> str:
        body = {"inputs": [{"name": "code", "datatype": "BYTES", "shape": [1], "data": [code]}]}
        path = "/endpoints/cats/v2/models/hostile/infer"
        answer = self.product.request(path, key=self.key, body=json.dumps(body).encode())
        assert answer.status == 200, answer.body
        said: str = json.loads(answer.body)["outputs"][0]["data"][0]
        return said


def stages(factory: pytest.TempPathFactory, **environment: str) -> Iterator[Stage]:
    root = factory.mktemp("hostile")
    for product in running(root, **environment):
        (product.files / "secret.txt").write_text("secret")
        for name in ("hostile", "victim"):
            version = root / name / name / "1"
            version.mkdir(parents=True)
            (version / "model.py").write_text(MODEL.format(name=name))
            (version.parent / "config.pbtxt").write_text(CONFIG)
            product.run("model", "create", "-n", name, "-v", "1", "-t", "triton_model", "-p", str(root / name))
        product.endpoint()
        product.deploy("victim", "victim:1", environment_variables={"PASSWORD": "s3cr3t"})
        product.deploy("hostile", "hostile:1", "--all-traffic", instance_type=DEFAULT_INSTANCE_TYPE)
        yield Stage(product, product.keys()[0], environment["ML_ISOLATION"] != "off")


@pytest.fixture(scope="module")
def isolated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    if not FOUND.on:
        pytest.skip(f"{FOUND.why}: {FOUND.hint}")
    yield from stages(tmp_path_factory, ML_ISOLATION="required", ML_ISOLATION_NETWORK="none")


@pytest.fixture(scope="module")
def open_to_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    yield from stages(tmp_path_factory, ML_ISOLATION="off")


def test_what_a_model_reaches_with_isolation(isolated: Stage) -> None:
    assert isolated.product.json("server", "status")["isolation"] == "on"
    said = {name: isolated.attack(code) for name, (code, _, _) in ATTACKS.items()}
    assert said == {name: expected for name, (_, expected, _) in ATTACKS.items()}


def test_what_a_model_reaches_without_isolation(open_to_all: Stage) -> None:
    assert open_to_all.product.json("server", "status")["isolation"] == "off: isolation is set to off"
    shown = open_to_all.product.run("online-deployment", "show", "-n", "victim", "-e", "cats", "-o", "json").stdout
    assert "not isolated from this machine and its other models: isolation is set to off" in shown
    tried = {name: (code, expected) for name, (code, _, expected) in ATTACKS.items() if expected is not None}
    assert {name: open_to_all.attack(code) for name, (code, _) in tried.items()} == {
        n: e for n, (_, e) in tried.items()
    }


@pytest.mark.skipif(os.geteuid() != 0, reason="run as root: only root can act as another user")
def test_what_another_user_of_the_machine_reaches(isolated: Stage) -> None:
    record = isolated.record("victim")
    process = record["process"]
    assert isinstance(process, dict)
    pid, sockets = process["pid"], record["sockets"]
    tries = (
        f"ls {isolated.product.home}",
        f"ls {sockets}",
        f"cat /proc/{pid}/environ",
        f"ls /proc/{pid}/root/",
        f"ls /proc/{pid}/fd",
        f"kill -0 {pid}",
        f"ls /dev/shm/{shm_prefix(isolated.product.home, str(record['id']))}*",
    )
    reached = [one for one in tries if _as_another(one).returncode == 0]
    assert reached == []
    assert "s3cr3t" not in _as_another(f"cat /proc/{pid}/cmdline").stdout


def test_a_model_that_takes_more_memory_than_its_type_has_is_ended_and_it_is_said(isolated: Stage) -> None:
    """Last, since the instance is another one afterwards."""
    with pytest.raises(AssertionError):
        isolated.run("used = b'x' * 2**32")

    def told() -> bool:
        shown = isolated.product.run("online-deployment", "show", "-n", "hostile", "-e", "cats", "-o", "json")
        return "it needed more memory than the 2 GiB" in shown.stdout

    wait_until(told, "the deployment's status says why")


def _as_another(command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", "-c", command],
        capture_output=True,
        text=True,
        check=False,
        user=4321,
        group=4321,
        extra_groups=[],
        cwd="/",
    )
