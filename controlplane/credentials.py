"""The control plane's own secrets: made at the first start, read ever after.

Decides how many there are, how they are made and who may read them. Must not know HTTP or who presents them.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path

from amphitrite.controlplane.home import Home
from amphitrite.dataplane.files import write_atomically
from amphitrite.dataplane.routing import Secret

#: Bytes of randomness in each secret.
ENTROPY = 32


@dataclass(frozen=True, slots=True)
class Credentials:
    """``token`` opens everything, ``agent_token`` only the data plane's routes, ``identity_header`` is traded for
    ``token`` at the identity endpoint."""

    token: Secret
    agent_token: Secret
    identity_header: Secret


def ensure(home: Home) -> Credentials:
    """Read the secrets of ``home``, make those that are missing. Files are 0600, also those found otherwise."""
    return Credentials(
        token=_secret(home.credentials / "token"),
        agent_token=_secret(home.credentials / "agent-token"),
        identity_header=_secret(home.credentials / "identity-header"),
    )


def _secret(path: Path) -> Secret:
    text = path.read_text(encoding="ascii").strip() if path.exists() else ""
    if not text:
        text = secrets.token_urlsafe(ENTROPY)
        write_atomically(path, f"{text}\n".encode("ascii"), mode=0o600)
    path.chmod(0o600)
    return Secret(text)
