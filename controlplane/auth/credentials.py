"""The secrets of the control plane: created at the first start or provided as files, then read.

Decides which secrets there are, how they are created and who may read them. Must not know HTTP or
who presents them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from amphitrite.controlplane.auth.random_text import random_text
from amphitrite.controlplane.settings.home import Home
from amphitrite.dataplane.machine.atomic_files import write_atomically
from amphitrite.dataplane.table.routing_table import Secret
from amphitrite.schemas.errors import Error

#: The number of characters of each secret (256 bits of randomness).
_LENGTH = 43


@dataclass(slots=True)
class Credentials:
    """The secrets of one control plane.

    * ``token`` authorizes everything.
    * ``agent_token`` authorizes the data plane's routes only.
    * ``identity_header`` is exchanged for ``token`` at the identity endpoint and the token
      authority.
    * ``fetch_key`` signs fetch grants and shared access signatures. It is never sent.

    There is one object for the life of the process; ``refresh`` replaces the first three in it.
    """

    token: Secret
    agent_token: Secret
    identity_header: Secret
    fetch_key: Secret


def ensure(home: Home) -> Credentials:
    """Reads the secrets of ``home`` and creates missing ones. Sets mode 0600 on the files."""
    return Credentials(
        token=_secret(home.credentials / "token"),
        agent_token=_secret(home.credentials / "agent-token"),
        identity_header=_secret(home.credentials / "identity-header"),
        fetch_key=_secret(home.credentials / "fetch-key"),
    )


def load(directory: Path) -> Credentials:
    """Reads the secrets in a provided directory (a mounted Secret), which is never written.

    Raises Error("BadArgument") for a file that is missing, empty or not ASCII.
    """
    return Credentials(
        token=_read_secret(directory / "token"),
        agent_token=_read_secret(directory / "agent-token"),
        identity_header=_read_secret(directory / "identity-header"),
        fetch_key=_read_secret(directory / "fetch-key"),
    )


def refresh(credentials: Credentials, directory: Path) -> bool:
    """Applies changes in ``directory``. Returns whether there were any. Raises what ``load``
    raises.

    ``fetch_key`` stays until the next start, because grants of running pods are signed with it.
    """
    current = load(directory)
    current.fetch_key = credentials.fetch_key
    if current == credentials:
        return False
    credentials.token, credentials.agent_token = current.token, current.agent_token
    credentials.identity_header = current.identity_header
    return True


def check(path: Path) -> None:
    """Raises Error LocalFileError for a file that is not one line of printable ASCII characters.
    Any such line is a secret, so other changes cannot be noticed."""
    data = path.read_bytes().strip()
    if not data or not all(0x21 <= byte <= 0x7E for byte in data):
        raise Error(
            "LocalFileError",
            f"{path} is not one line of text",
            target=str(path),
            hint=f"restore it from a backup, or remove it for a new secret: rm {path}",
        )


def _secret(path: Path) -> Secret:
    text = ""
    if path.exists() and path.stat().st_size:
        check(path)
        text = path.read_text(encoding="ascii").strip()
    if not text:
        text = random_text(_LENGTH)
        write_atomically(path, f"{text}\n".encode("ascii"), mode=0o600)
    path.chmod(0o600)
    return Secret(text)


def _read_secret(path: Path) -> Secret:
    hint = "ML_CREDENTIALS_DIRECTORY must contain the files token, agent-token, identity-header and fetch-key"
    try:
        text = path.read_text(encoding="ascii").strip()
    except OSError as exc:
        raise Error("BadArgument", f"cannot read {path}: {exc.strerror}", target=str(path), hint=hint) from exc
    except UnicodeDecodeError as exc:
        raise Error("BadArgument", f"{path} is not ASCII text", target=str(path), hint=hint) from exc
    if not text:
        raise Error("BadArgument", f"{path} is empty", target=str(path), hint=hint)
    return Secret(text)
