"""Where everything lies below ML_HOME.

Decides file names and modes of the state on one machine. Must not know what is inside the files.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

#: sizeof(sun_path) on Linux, less the final NUL.
_SOCKET_PATH_MAX = 107


@dataclass(frozen=True, slots=True)
class Home:
    """Paths below one ML_HOME. ``create`` makes the directories, all 0700."""

    root: Path

    @property
    def server_file(self) -> Path:
        """JSON about the running control plane (0600): see ``server_state``; also what the CLI reads."""
        return self.root / "server.json"

    @property
    def lock_file(self) -> Path:
        return self.root / "lock"

    @property
    def database(self) -> Path:
        return self.root / "amphitrite.db"

    @property
    def models(self) -> Path:
        """Content-addressed model files and the repositories made of them."""
        return self.root / "models"

    @property
    def certificates(self) -> Path:
        """``ca.pem``, ``ca.key``, ``server.pem``, ``server.key``, ``bundle.pem`` (the system's roots plus ours)."""
        return self.root / "certificates"

    @property
    def credentials(self) -> Path:
        """``token`` (control-plane bearer), ``agent-token``, ``identity-header``; one line each, 0600."""
        return self.root / "credentials"

    @property
    def instances(self) -> Path:
        """One directory per instance: its record and its log."""
        return self.root / "instances"

    @property
    def dataplane(self) -> Path:
        """The agent's state: ``routing-table.json``, ``bootstrap.json``, ``envoy.json``, ``agent.json``."""
        return self.root / "dataplane"

    @property
    def logs(self) -> Path:
        """``controlplane.log``, ``agent.log``, ``envoy.log``, ``access.log``."""
        return self.root / "logs"

    def create(self) -> None:
        directories = (
            self.root, self.models, self.certificates, self.credentials,
            self.instances, self.dataplane, self.logs,
        )  # fmt: skip
        for directory in directories:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            directory.chmod(0o700)

    def socket(self, name: str) -> Path:
        """A path for a UNIX socket: below the home, or in a directory of its own in /tmp when that is too long."""
        path = self.root / "run" / name
        if len(os.fsencode(path)) > _SOCKET_PATH_MAX:
            digest = hashlib.sha256(os.fsencode(self.root.resolve())).hexdigest()[:12]
            path = Path(tempfile.gettempdir()) / f"amphitrite-{os.getuid()}-{digest}" / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path
