"""The whole product as its user has it: the command ``ml`` in a home of its own, real Envoy and
Triton behind it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import ssl
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil

from amphitrite.dataplane.machine import processes

from .. import tiers
from ..ports import free_ports
from ..waiting import wait_until
from .user import Answer, User

__all__ = ["Answer", "Product", "running"]


class Product(User):
    """One home. Every process it leads to ends with ``destroy``."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.files = root / "files"
        self.files.mkdir(parents=True)
        self.port, self.scoring_port = free_ports(2)
        self.api_url = f"https://127.0.0.1:{self.port}"
        self.scoring = ("127.0.0.1", self.scoring_port)
        self.ca_file = self.home / "certificates" / "ca.pem"
        self.environment = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}",
            "HOME": str(root),
            "ML_HOME": str(self.home),
            "LANG": "C.UTF-8",
        }

    def token(self) -> str:
        return (self.home / "credentials" / "token").read_text().strip()

    def start(self) -> None:
        self.run("server", "start", "-d", "--port", str(self.port), "--scoring-port", str(self.scoring_port))

    def identity(self, resource: str) -> dict[str, str]:
        """What a stock credential of Azure's is given for ``resource``."""
        header = (self.home / "credentials" / "identity-header").read_text().strip()
        found: dict[str, str] = (
            httpx.get(
                f"{self.api_url}/identity/token",
                params={"api-version": "2019-08-01", "resource": resource},
                headers={"X-IDENTITY-HEADER": header},
                verify=ssl.create_default_context(cafile=str(self.ca_file)),
            )
            .raise_for_status()
            .json()
        )
        return found

    # -- processes ---------------------------------------------------------------------------------
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

    def outdate_envoy(self) -> processes.ProcessRecord:
        """Let the record of the running Envoy say that it was started with other settings, as an
        older release does."""
        path = self.home / "dataplane" / "envoy.json"
        record = processes.read(path)
        assert record is not None
        processes.write(path, record, digest="other")
        return record

    def kill_control_plane(self) -> None:
        self.kill(self.pid("server.json"))

    def query(self, sql: str, *values: object) -> list[Any]:
        """Read the product's database from outside."""
        with sqlite3.connect(f"file:{self.home / 'amphitrite.db'}?mode=ro", uri=True) as connection:
            return connection.execute(sql, values).fetchall()

    def execute(self, sql: str, *values: object) -> None:
        """Change the product's database behind its back."""
        with sqlite3.connect(self.home / "amphitrite.db", timeout=10) as connection:
            connection.execute(sql, values)

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


def running(root: Path, **environment: str) -> Iterator[Product]:
    """A started product, ended afterwards; for fixtures. ``environment``: variables besides its
    own."""
    tiers.needs("serving")
    product = Product(root)
    product.environment |= environment
    try:
        product.start()
        yield product
    finally:
        product.destroy()
