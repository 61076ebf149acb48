"""The certificate files, and when they have changed.

Decides when the certificate is read again, and that chain and key are of one renewal: a mounted
Secret changes by one swap of a link above both files. Must not know who renews the certificate or
how it reaches Envoy.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from amphitrite.dataplane.envoy.translate.resources import SECRET, Resource
from amphitrite.dataplane.envoy.translate.secrets import CERTIFICATE, certificate
from amphitrite.schemas.errors import Error

#: A swap during a read is rare. Two in a row are no longer a renewal.
_ATTEMPTS = 3


class CertificateFiles:
    """A certificate chain and its key: PEM files, which are replaced before the certificate
    expires."""

    def __init__(self, chain: Path, private_key: Path) -> None:
        self._paths = (chain, private_key)
        self._seen: tuple[tuple[int, int, int], ...] = ()

    def changed(self) -> dict[str, Resource] | None:
        """The secret by name when the files differ from the last call's, else None. Raises
        Error(LocalFileError) when they cannot be read."""
        try:
            for _ in range(_ATTEMPTS):
                seen = self._state()
                if seen == self._seen:
                    return None
                chain, key = (p.read_text(encoding="ascii") for p in self._paths)
                if self._state() == seen:
                    self._seen = seen
                    return {CERTIFICATE: Resource.of(SECRET, partial(certificate, chain, key))}
        except (OSError, ValueError) as exc:
            raise Error("LocalFileError", f"cannot read the certificate: {exc}") from exc
        raise Error("LocalFileError", f"the certificate changes while it is read: {self._paths[0]}")

    def _state(self) -> tuple[tuple[int, int, int], ...]:
        """What distinguishes one content of the files from another, through any links."""
        return tuple((s.st_mtime_ns, s.st_size, s.st_ino) for s in (p.stat() for p in self._paths))
