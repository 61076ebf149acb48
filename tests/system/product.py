"""The whole product as its user has it: the command ``ml`` in a home of its own, real Envoy and Triton behind it."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import sqlite3
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil

from amphitrite.dataplane import processes
from amphitrite.schemas.names import workspace_id

DEADLINE_S = 60.0


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def wait_until(condition: Callable[[], Any], what: str, deadline_s: float = DEADLINE_S) -> Any:
    """The first truthy answer of ``condition``, asked every 10 ms; fails with ``what`` past the deadline."""
    pause = threading.Event()
    end = time.monotonic() + deadline_s
    while True:
        if answer := condition():
            return answer
        assert time.monotonic() < end, f"after {deadline_s:.0f} s still not: {what}"
        pause.wait(0.01)


@dataclass(frozen=True)
class Answer:
    """One scoring answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def error(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.body)["error"]
        return value

    @property
    def deployment(self) -> str | None:
        return self.headers.get("azureml-model-deployment")


class Product:
    """One home. Every process it leads to ends with ``destroy``."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.files = root / "files"
        self.files.mkdir(parents=True)
        self.port, self.scoring_port = free_ports(2)
        self.environment = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}",
            "HOME": str(root),
            "ML_HOME": str(self.home),
            "LANG": "C.UTF-8",
        }

    # -- commands -----------------------------------------------------------------------------------------------------
    def run(self, *argv: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """``ml`` with these arguments."""
        done = subprocess.run(
            [str(Path(sys.executable).parent / "ml"), *argv],
            env=self.environment,
            cwd=self.files,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=180,
        )
        if check:
            assert done.returncode == 0, f"ml {' '.join(argv)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def json(self, *argv: str) -> Any:
        return json.loads(self.run(*argv, "-o", "json").stdout)

    def start(self) -> None:
        self.run("server", "start", "-d", "--port", str(self.port), "--scoring-port", str(self.scoring_port))

    def file(self, name: str, text: str) -> str:
        (self.files / name).write_text(text)
        return name

    def endpoint(self, name: str = "cats") -> None:
        self.run("online-endpoint", "create", "-n", name)

    def deploy(
        self, name: str, model: str, *more: str, endpoint: str = "cats", verb: str = "create", **settings: Any
    ) -> Any:
        """Create or update a deployment of the registered ``model`` (name:version) with these settings."""
        lines = [f"name: {name}", f"endpoint_name: {endpoint}", f"model: azureml:{model}"]
        values = {"instance_type": "Standard_DS3_v2", "instance_count": 1, **settings}
        lines += [f"{key}: {json.dumps(value)}" for key, value in values.items()]
        document = self.file(f"{endpoint}-{name}.yml", "\n".join(lines) + "\n")
        return self.run("online-deployment", verb, "-f", document, *more)

    def traffic(self, endpoint: str = "cats", **shares: int) -> None:
        text = " ".join(f"{name}={share}" for name, share in shares.items())
        self.run("online-endpoint", "update", "-n", endpoint, "--traffic", text)

    def put_traffic(self, endpoint: str, shares: dict[str, int]) -> None:
        """Change the split by REST, which costs less than a command, and wait until the proxies have it."""
        token = (self.home / "credentials" / "token").read_text().strip()
        with httpx.Client(
            base_url=f"https://127.0.0.1:{self.port}",
            headers={"Authorization": f"Bearer {token}"},
            verify=ssl.create_default_context(cafile=str(self.home / "certificates" / "ca.pem")),
        ) as client:
            path = f"{workspace_id('local', 'local', 'local')}/onlineEndpoints/{endpoint}"
            body = client.get(path).raise_for_status().json()
            body["properties"]["traffic"] = shares
            operation = client.put(path, json=body).raise_for_status().headers["Azure-AsyncOperation"]
            wait_until(lambda: client.get(operation).json()["status"] == "Succeeded", f"traffic {shares}")

    def keys(self, endpoint: str = "cats") -> tuple[str, str]:
        found = self.json("online-endpoint", "get-credentials", "-n", endpoint)
        return found["primaryKey"], found["secondaryKey"]

    # -- scoring ------------------------------------------------------------------------------------------------------
    def connection(self) -> http.client.HTTPSConnection:
        trust = ssl.create_default_context(cafile=str(self.home / "certificates" / "ca.pem"))
        return http.client.HTTPSConnection("127.0.0.1", self.scoring_port, context=trust, timeout=30)

    def request(
        self,
        path: str,
        *,
        method: str = "POST",
        key: str | None = None,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """One request to the scoring port on a connection of its own."""
        sent = dict(headers or {})
        if key is not None:
            sent["Authorization"] = f"Bearer {key}"
        connection = self.connection()
        try:
            connection.request(method, path, body=body, headers=sent)
            answer = connection.getresponse()
            return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    # -- processes ----------------------------------------------------------------------------------------------------
    def pid(self, file: str) -> int:
        record = processes.read(self.home / file)
        assert record is not None and processes.alive(record), f"{file} names no living process"
        return record.pid

    def instances(self) -> list[int]:
        """Pids of the Triton servers of this home."""
        found = []
        for file in sorted(self.home.glob("instances/*/instance.json")):
            # Absent while the record is replaced; without a process before the server is started.
            process = json.loads(file.read_text())["process"] if file.exists() else None
            if process and processes.alive(processes.ProcessRecord(process["pid"], process["create_time"])):
                found.append(int(process["pid"]))
        return found

    def kill(self, pid: int) -> None:
        record = processes.of(pid)
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not processes.alive(record), f"{pid} is dead")

    def kill_control_plane(self) -> None:
        self.kill(self.pid("server.json"))

    def query(self, sql: str, *values: object) -> list[Any]:
        """Read the product's database from outside."""
        with sqlite3.connect(f"file:{self.home / 'amphitrite.db'}?mode=ro", uri=True) as connection:
            return connection.execute(sql, values).fetchall()

    def left_over(self) -> list[str]:
        """Command lines of processes that belong to this home, whoever started them."""
        found = []
        for process in psutil.process_iter(["cmdline", "environ", "status"]):
            info = process.info
            text = " ".join(info["cmdline"] or ())
            environment = info["environ"] or {}
            mine = str(self.home) in text or str(self.home) in environment.get("ML_HOME", "")
            if mine and process.pid != os.getpid() and info["status"] != psutil.STATUS_ZOMBIE:
                found.append(text)
        return found

    def destroy(self) -> None:
        self.run("server", "stop", check=False)
        for process in psutil.process_iter(["cmdline"]):
            if str(self.home) in " ".join(process.info["cmdline"] or ()):
                process.kill()
        shutil.rmtree(self.home, ignore_errors=True)


def running(root: Path) -> Iterator[Product]:
    """A started product, ended afterwards; for fixtures."""
    product = Product(root)
    try:
        product.start()
        yield product
    finally:
        product.destroy()
