"""``server.json``: what the CLI needs to find a control plane.

Decides its fields (docs/architecture.md) and whether the process that wrote it lives. Must not know
the CLI.
"""

from __future__ import annotations

from typing import Any, Literal

from amphitrite.controlplane.auth.certificates import Certificates
from amphitrite.controlplane.settings.home import Home
from amphitrite.controlplane.settings.settings import Settings
from amphitrite.controlplane.settings.version import VERSION
from amphitrite.dataplane.machine import processes
from amphitrite.schemas.sealed_json import unseal


def write(settings: Settings, tls: Certificates, state: Literal["starting", "running"], isolation: str | None) -> None:
    """Records that this process is the home's control plane. ``isolation``: of its instances, in
    words."""
    home = settings.home
    processes.write(
        home.server_file,
        processes.own(),
        state=state,
        version=VERSION,
        runtime=settings.runtime,
        isolation=isolation,
        api_url=settings.api_url,
        scoring_url=settings.scoring_url,
        host=settings.host,
        port=settings.port,
        scoring_port=settings.scoring_port,
        scoring_domain=settings.scoring_domain,
        studio_url=None,
        ca_file=str(tls.ca_file),
        bundle_file=str(tls.bundle_file),
        token_file=str(settings.credentials / "token"),
        identity_endpoint=f"{settings.api_url}/identity/token",
        identity_header_file=str(settings.credentials / "identity-header"),
        home=str(home.root),
        subscription=settings.subscription,
        resource_group=settings.resource_group,
        workspace=settings.workspace,
    )


def running(home: Home) -> dict[str, Any] | None:
    """The content of the file if the process that wrote it lives."""
    record = processes.read(home.server_file)
    if record is None or not processes.alive(record):
        return None
    value: dict[str, Any] = unseal(home.server_file.read_text(encoding="utf-8"))
    return value


def ended(home: Home) -> None:
    """Removes the file: no control plane of this home runs."""
    home.server_file.unlink(missing_ok=True)
