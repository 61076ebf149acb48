"""The certificate files, and when they have changed.

Decides when the certificate is read anew. Must not know who renews it or how it reaches Envoy.
"""

from __future__ import annotations

from pathlib import Path

from amphitrite.dataplane.envoy.resources import Resource
from amphitrite.dataplane.envoy.secrets import CERTIFICATE, certificate
from amphitrite.schemas.errors import Error


class CertificateFiles:
    """A chain and its key, as PEM files that somebody else replaces before the certificate expires."""

    def __init__(self, chain: Path, private_key: Path) -> None:
        self._paths = (chain, private_key)
        self._seen: tuple[tuple[int, int, int], ...] = ()

    def changed(self) -> dict[str, Resource] | None:
        """The secret by name when the files differ from the last call's, else None. Raises Error(LocalFileError)."""
        try:
            seen = tuple((s.st_mtime_ns, s.st_size, s.st_ino) for s in (p.stat() for p in self._paths))
            if seen == self._seen:
                return None
            chain, key = (p.read_text(encoding="ascii") for p in self._paths)
        except (OSError, ValueError) as exc:
            raise Error("LocalFileError", f"cannot read the certificate: {exc}") from exc
        self._seen = seen
        return {CERTIFICATE: Resource.of(certificate(chain, key))}
