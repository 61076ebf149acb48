"""The paths below ML_HOME.

Decides file names and modes of the state on one machine. Must not know what is inside the files.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from amphitrite.schemas.errors import Error

#: The size of sun_path on Linux without the final NUL (unix(7)).
_SOCKET_PATH_MAX = 107


@dataclass(frozen=True, slots=True)
class Home:
    """Paths below one ML_HOME. ``create`` creates the directories with mode 0700."""

    root: Path

    @property
    def server_file(self) -> Path:
        """JSON about the running control plane, mode 0600: see ``process.server_file``. The CLI
        reads it."""
        return self.root / "server.json"

    @property
    def lock_file(self) -> Path:
        return self.root / "lock"

    @property
    def database(self) -> Path:
        return self.root / "amphitrite.db"

    @property
    def models(self) -> Path:
        """Content-addressed model files, and the repositories made of them."""
        return self.root / "models"

    @property
    def certificates(self) -> Path:
        """``ca.pem``, ``ca.key``, ``server.pem``, ``server.key``, ``bundle.pem`` (the system's
        roots and ours)."""
        return self.root / "certificates"

    @property
    def credentials(self) -> Path:
        """``token``, ``agent-token``, ``identity-header`` and ``fetch-key``: one line each, mode
        0600."""
        return self.root / "credentials"

    @property
    def instances(self) -> Path:
        """One directory for each instance, with its record and its log."""
        return self.root / "instances"

    @property
    def dataplane(self) -> Path:
        """The agent's state: ``routing-table.json``, ``bootstrap.json``, ``envoy.json``,
        ``agent.json``."""
        return self.root / "dataplane"

    @property
    def logs(self) -> Path:
        """``controlplane.log``, ``agent.log``, ``envoy.log``, ``access.log``."""
        return self.root / "logs"

    def require_shell_safe(self) -> None:
        """Raises Error("BadArgument") if the path needs shell quoting.

        Triton starts its Python stubs with a shell and quotes nothing: with a space in the path it
        would wait forever.
        """
        path = str(self.root)
        if shlex.quote(path) != path:
            raise Error(
                "BadArgument",
                f"Triton cannot serve from {path!r}: its Python backend does not quote paths",
                target="ML_HOME",
                hint="set ML_HOME to a path with only letters, digits, `.`, `_`, `-` and `/`",
            )

    def create(self) -> None:
        """Raises Error("BadArgument") if a directory cannot be created."""
        try:
            self._create()
        except OSError as exc:
            message = f"cannot create {exc.filename}: {exc.strerror}"
            hint = "set ML_HOME to a writable directory"
            raise Error("BadArgument", message, target="ML_HOME", hint=hint) from exc

    def _create(self) -> None:
        directories = (
            self.root, self.models, self.certificates, self.credentials,
            self.instances, self.dataplane, self.logs,
        )  # fmt: skip
        for directory in directories:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            directory.chmod(0o700)

    def socket_directory(self, longest: str) -> Path:
        """A directory for UNIX sockets whose names below it are no longer than ``longest``: below
        the home or, if their paths would be too long there, a directory of its own in /tmp.

        Raises Error("BadArgument") if another user owns that directory, who could then replace the
        sockets.
        """
        digest = hashlib.sha256(os.fsencode(self.root.resolve())).hexdigest()[:12]
        short = f"amphitrite-{os.getuid()}-{digest}"
        places = (self.root / "run", Path(tempfile.gettempdir()) / short)
        path = next((p for p in places if len(os.fsencode(p / longest)) <= _SOCKET_PATH_MAX), Path("/tmp") / short)
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = path.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
            message = f"{path} is not a private directory of this user"
            hint = "remove it, or set ML_HOME to a shorter path"
            raise Error("BadArgument", message, target=str(path), hint=hint)
        return path
