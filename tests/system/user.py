"""Whoever uses the product: the command ``ml`` with an environment of its own, and requests to the
scoring address."""

from __future__ import annotations

import http.client
import json
import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from amphitrite.schemas.names import workspace_id

from ..waiting import wait_until
from . import commands


@dataclass(frozen=True)
class Answer:
    """One scoring answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def error(self) -> dict[str, Any]:
        """Code and message, whichever form they have."""
        value = json.loads(self.body)["error"]
        if isinstance(value, str):
            code, _, message = value.partition(": ")
            return {"code": code, "message": message}
        found: dict[str, Any] = value
        return found

    @property
    def deployment(self) -> str | None:
        return self.headers.get("azureml-model-deployment")


class User:
    """``files``: where documents are written. ``api_url``: of the control plane; ``scoring``: host
    and port of clients; ``ca_file``: whom both are trusted by."""

    files: Path
    environment: dict[str, str]
    api_url: str
    scoring: tuple[str, int]
    ca_file: Path

    def token(self) -> str:
        """The control plane's bearer token."""
        raise NotImplementedError

    # -- commands ----------------------------------------------------------------------------------
    def run(self, *argv: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """``ml`` with these arguments."""
        done = commands.run(argv, self.environment, self.files, timeout_s=180)
        if check:
            assert done.returncode == 0, f"ml {' '.join(argv)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def json(self, *argv: str) -> Any:
        return json.loads(self.run(*argv, "-o", "json").stdout)

    def file(self, name: str, text: str) -> str:
        (self.files / name).write_text(text)
        return name

    def endpoint(self, name: str = "cats") -> None:
        self.run("online-endpoint", "create", "-n", name)

    def deploy(
        self, name: str, model: str, *more: str, endpoint: str = "cats", verb: str = "create", **settings: Any
    ) -> Any:
        """Create or update a deployment of the registered ``model`` (name:version) with these
        settings. Unless they say otherwise a request may take long: the machine is busy, and no
        test waits for 408 by accident."""
        lines = [f"name: {name}", f"endpoint_name: {endpoint}", f"model: azureml:{model}"]
        patient = {"request_timeout_ms": 60_000}
        values = {"instance_type": "Standard_DS3_v2", "instance_count": 1, "request_settings": patient, **settings}
        lines += [f"{key}: {json.dumps(value)}" for key, value in values.items()]
        document = self.file(f"{endpoint}-{name}.yml", "\n".join(lines) + "\n")
        return self.run("online-deployment", verb, "-f", document, *more)

    def traffic(self, endpoint: str = "cats", **shares: int) -> None:
        text = " ".join(f"{name}={share}" for name, share in shares.items())
        self.run("online-endpoint", "update", "-n", endpoint, "--traffic", text)

    def put_traffic(self, endpoint: str, shares: dict[str, int]) -> None:
        """Change the split, and wait until the proxies have it."""
        self.put(f"onlineEndpoints/{endpoint}", traffic=shares)

    def put(self, path: str, **properties: Any) -> None:
        """Ask for a resource of the workspace again, with these properties changed, and wait until
        it is so. By REST, which costs less than a command."""
        with httpx.Client(
            base_url=self.api_url,
            headers={"Authorization": f"Bearer {self.token()}"},
            verify=ssl.create_default_context(cafile=str(self.ca_file)),
        ) as client:
            address = f"{workspace_id('local', 'local', 'local')}/{path}"
            body = client.get(address).raise_for_status().json()
            body["properties"] |= properties
            operation = client.put(address, json=body).raise_for_status().headers["Azure-AsyncOperation"]
            wait_until(lambda: client.get(operation).json()["status"] == "Succeeded", f"{path} {properties}")

    def rest(self, method: str, path: str, body: Any = None, token: str | None = None) -> httpx.Response:
        """One request to the API, to ``path`` below the workspace."""
        address = f"{self.api_url}{workspace_id('local', 'local', 'local')}/{path}"
        headers = {"Authorization": f"Bearer {self.token() if token is None else token}"}
        trust = ssl.create_default_context(cafile=str(self.ca_file))
        return httpx.request(method, address, json=body, headers=headers, verify=trust, timeout=30)

    def keys(self, endpoint: str = "cats") -> tuple[str, str]:
        """Primary and secondary; by REST, which costs less than a command."""
        found = self.rest("POST", f"onlineEndpoints/{endpoint}/listKeys").raise_for_status().json()
        return found["primaryKey"], found["secondaryKey"]

    # -- scoring -----------------------------------------------------------------------------------
    def connection(self) -> http.client.HTTPSConnection:
        trust = ssl.create_default_context(cafile=str(self.ca_file))
        return http.client.HTTPSConnection(*self.scoring, context=trust, timeout=30)

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
