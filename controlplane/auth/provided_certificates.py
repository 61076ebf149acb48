"""TLS from files of others: a certificate that somebody else issues and renews (cert-manager, an operator).

Decides the files' names, those of a Kubernetes Secret of type kubernetes.io/tls, and that a certificate and a key must
belong together. Must not know who listens.
"""

from __future__ import annotations

import ssl
from pathlib import Path

from amphitrite.controlplane.auth.certificates import Certificates, system_roots
from amphitrite.controlplane.settings.home import Home
from amphitrite.dataplane.machine.atomic_files import write_atomically
from amphitrite.schemas.errors import Error


def load(directory: Path, home: Home) -> Certificates:
    """``tls.crt``, ``tls.key`` and, where clients do not know the issuer, ``ca.crt`` in ``directory``, which is only
    read. What clients trust (the system's roots, and ``ca.crt``) is gathered in ``home``.

    Raises Error("BadArgument") that names the file."""
    certificate, key, authority = directory / "tls.crt", directory / "tls.key", directory / "ca.crt"
    for path in (certificate, key):
        _read(path)
    try:
        # Both are loaded as a server does it: that they belong together is checked by the way.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except ssl.SSLError as exc:
        message = f"{certificate} and {key.name} are no certificate with its key"
        raise Error("BadArgument", message, target=str(certificate)) from exc
    bundle_file = home.certificates / "bundle.pem"
    ca = _read(authority) if authority.exists() else b""
    bundle = system_roots() + ca
    if not bundle_file.exists() or bundle_file.read_bytes() != bundle:
        write_atomically(bundle_file, bundle, mode=0o644)
    return Certificates(
        ca_file=authority if ca else bundle_file,
        certificate_file=certificate,
        key_file=key,
        bundle_file=bundle_file,
    )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as exc:
        hint = "ML_TLS_DIRECTORY holds tls.crt, tls.key and, for an authority of your own, ca.crt"
        raise Error("BadArgument", f"cannot read {path}: {exc.strerror}", target=str(path), hint=hint) from exc
