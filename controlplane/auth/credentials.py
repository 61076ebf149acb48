"""The control plane's own secrets: made at the first start, or handed in as files, read ever after.

Decides how many there are, how they are made and who may read them. Must not know HTTP or who presents them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from amphitrite.controlplane.auth.random_text import random_text
from amphitrite.controlplane.settings.home import Home
from amphitrite.dataplane.machine.atomic_files import write_atomically
from amphitrite.dataplane.table.routing_table import Secret
from amphitrite.schemas.errors import Error

#: Characters of each secret: 256 bits.
_LENGTH = 43


@dataclass(slots=True)
class Credentials:
    """``token`` opens everything, ``agent_token`` only the data plane's routes, ``identity_header`` is traded for
    ``token`` at the identity endpoint and the authority, ``fetch_key`` signs what pods fetch models with and what opens
    a container of blobs, and leaves nowhere.

    One object for the life of the process: ``refresh`` replaces the first three in it."""

    token: Secret
    agent_token: Secret
    identity_header: Secret
    fetch_key: Secret


def ensure(home: Home) -> Credentials:
    """Read the secrets of ``home``, make those that are missing. Files are 0600, also those found otherwise."""
    return Credentials(
        token=_secret(home.credentials / "token"),
        agent_token=_secret(home.credentials / "agent-token"),
        identity_header=_secret(home.credentials / "identity-header"),
        fetch_key=_secret(home.credentials / "fetch-key"),
    )


def given(directory: Path) -> Credentials:
    """The secrets in a directory of others (a mounted Secret); nothing is written there.

    Raises Error("BadArgument") for a file that is missing, empty or not ASCII."""
    return Credentials(
        token=_given(directory / "token"),
        agent_token=_given(directory / "agent-token"),
        identity_header=_given(directory / "identity-header"),
        fetch_key=_given(directory / "fetch-key"),
    )


def refresh(credentials: Credentials, directory: Path) -> bool:
    """Take over what has changed in ``directory``; whether anything had. What pods hold is signed with the key they
    were made with, so ``fetch_key`` stays until the next start. Raises what ``given`` raises; nothing has changed then.
    """
    fresh = given(directory)
    fresh.fetch_key = credentials.fetch_key
    if fresh == credentials:
        return False
    credentials.token, credentials.agent_token = fresh.token, fresh.agent_token
    credentials.identity_header = fresh.identity_header
    return True


def _secret(path: Path) -> Secret:
    text = path.read_text(encoding="ascii").strip() if path.exists() else ""
    if not text:
        text = random_text(_LENGTH)
        write_atomically(path, f"{text}\n".encode("ascii"), mode=0o600)
    path.chmod(0o600)
    return Secret(text)


def _given(path: Path) -> Secret:
    hint = "ML_CREDENTIALS_DIRECTORY holds the files token, agent-token, identity-header and fetch-key"
    try:
        text = path.read_text(encoding="ascii").strip()
    except OSError as exc:
        raise Error("BadArgument", f"cannot read {path}: {exc.strerror}", target=str(path), hint=hint) from exc
    except UnicodeDecodeError as exc:
        raise Error("BadArgument", f"{path} is not ASCII text", target=str(path), hint=hint) from exc
    if not text:
        raise Error("BadArgument", f"{path} is empty", target=str(path), hint=hint)
    return Secret(text)
