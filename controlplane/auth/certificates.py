"""TLS on one machine: a certificate authority, and the certificate that both planes serve.

Decides who signs, for how long, for which names, and when a certificate is renewed. Must not know
who listens.

The server's private key is created once and kept when its certificate is renewed. So certificate
and key match at any time, even for a reader such as Envoy that opens one file before a renewal and
the other after it. Deleting ``server.key`` creates a new pair at the next start.

The authority is never replaced: clients trust it. Its validity does not depend on the clock, which
may be wrong when it is created. Without both its files a new one is created.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from amphitrite.controlplane.auth import name_constraints
from amphitrite.controlplane.settings.home import Home
from amphitrite.dataplane.machine.atomic_files import write_atomically
from amphitrite.schemas.errors import Error

log = logging.getLogger(__name__)

#: The validity of an authority: from before this program until nobody uses it.
AUTHORITY_FROM, AUTHORITY_UNTIL = datetime(2000, 1, 1, tzinfo=timezone.utc), datetime(2100, 1, 1, tzinfo=timezone.utc)
LEAF_DAYS = 90
RENEW_BEFORE_DAYS = 30
#: A certificate is valid from a little before its creation, for clients whose clock is behind.
BACKDATE = timedelta(minutes=5)

#: What reading a damaged certificate or key raises.
_UNREADABLE = (
    *(ValueError, TypeError, UnsupportedAlgorithm),
    *(x509.InvalidVersion, x509.DuplicateExtension, x509.UnsupportedGeneralNameType),
)
#: What to do about a damaged authority.
AUTHORITY_HINT = "restore both from a backup, or remove both for a new authority, which clients must then trust"

#: Where Linux distributions keep the root certificates, besides OpenSSL's built-in path.
ROOT_FILES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)


@dataclass(frozen=True, slots=True)
class Certificates:
    """Paths of PEM files."""

    ca_file: Path
    certificate_file: Path
    key_file: Path
    bundle_file: Path


def ensure(home: Home, hosts: Iterable[str], now: float, others: Iterable[str] = ()) -> Certificates:
    """Creates, keeps or renews the files in ``home.certificates``, valid at ``now`` for exactly
    ``hosts`` and those of ``others`` that the authority permits.

    ``hosts``, ``others``: names and IP addresses (see ``addresses.certificate_hosts`` and
    ``machine_hosts``). Idempotent; writes only what changes. Raises Error("BadArgument") for a host
    that cannot be in a certificate or that the authority does not permit, and LocalFileError for an
    authority that is damaged or of which a part is missing.
    """
    at = datetime.fromtimestamp(now, timezone.utc)
    directory = home.certificates
    names, more = _general_names(hosts), _general_names(others)
    authority, authority_key = _authority(directory, [*names, *more])
    for name in names:
        if not name_constraints.permits(authority, name):
            raise _not_permitted(directory, authority, str(name.value))
    left_out = [str(one.value) for one in more if not name_constraints.permits(authority, one)]
    names = [*names, *(one for one in more if one not in names and str(one.value) not in left_out)]
    leaf, key = _load(directory / "server.pem", directory / "server.key")
    if key is None:
        key = _new_key(directory / "server.key")
    if leaf is not None and _is_valid(leaf, key, authority, names, at):
        if (directory / "server.pem").read_bytes() != _pem(leaf) + _pem(authority):
            write_atomically(directory / "server.pem", _pem(leaf) + _pem(authority), mode=0o644)
    else:
        if left_out:
            log.warning("the authority does not permit %s: the certificate does not name it", ", ".join(left_out))
        leaf = _issue(authority, authority_key, key, names, at)
        write_atomically(directory / "server.pem", _pem(leaf) + _pem(authority), mode=0o644)
    bundle = system_roots() + _pem(authority)
    bundle_file = directory / "bundle.pem"
    if not bundle_file.exists() or bundle_file.read_bytes() != bundle:
        write_atomically(bundle_file, bundle, mode=0o644)
    return Certificates(
        ca_file=directory / "ca.pem",
        certificate_file=directory / "server.pem",
        key_file=directory / "server.key",
        bundle_file=bundle_file,
    )


def problems(home: Home) -> Iterator[tuple[str, str, str]]:
    """(file, what is wrong with it, what to do) for each damaged file in ``home.certificates``.
    Without any file nothing is wrong: the next start creates them."""
    directory = home.certificates
    authority, authority_key = _load(directory / "ca.pem", directory / "ca.key")
    exists = [name for name in ("ca.pem", "ca.key") if (directory / name).exists()]
    bundle = directory / "bundle.pem"
    if not exists:
        return
    again = "the next start makes it again: `ml server start -d`"
    if authority is None or authority_key is None or not _is_authority(authority, authority_key):
        name = "ca.key" if authority is not None and _is_issued_by(authority, authority) else "ca.pem"
        yield name, "ca.pem and ca.key are not a certificate authority and its key", AUTHORITY_HINT
        return
    leaf, key = _load(directory / "server.pem", directory / "server.key")
    if (directory / "server.key").exists() and key is None:
        yield "server.key", "it is not a private key", again
    elif leaf is not None and key is not None and not _matches(leaf, key):
        yield "server.pem", "it is not the certificate of server.key", again
    if (directory / "server.pem").exists():
        text = (directory / "server.pem").read_bytes()
        if leaf is None or not _is_issued_by(leaf, authority) or text != _pem(leaf) + _pem(authority):
            yield "server.pem", "it is not what the authority has issued", again
    if bundle.exists() and not _is_bundle(bundle, authority):
        yield "bundle.pem", "it is not root certificates and the authority", again


def system_roots() -> bytes:
    """The root certificates that this machine trusts, in PEM; empty if there are none.

    It uses ``openssl_cafile``, OpenSSL's built-in path. ``cafile`` follows SSL_CERT_FILE, which may
    already be a bundle of ours, so the bundle would grow with each start.
    """
    for name in (ssl.get_default_verify_paths().openssl_cafile, *ROOT_FILES):
        path = Path(name)
        if path.is_file():
            return path.read_bytes().rstrip(b"\n") + b"\n"
    try:
        import certifi
    except ImportError:
        return b""
    return Path(certifi.where()).read_bytes().rstrip(b"\n") + b"\n"


def _authority(
    directory: Path, names: Iterable[x509.GeneralName]
) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    """The authority of ``directory``, or a new one for ``names``."""
    certificate_file, key_file = directory / "ca.pem", directory / "ca.key"
    certificate, key = _load(certificate_file, key_file)
    if certificate is not None and key is not None and _is_authority(certificate, key):
        return certificate, key
    if certificate_file.exists() or (key_file.exists() and key is None):
        message = f"{certificate_file} and {key_file.name} are not a certificate authority and its key"
        raise Error("LocalFileError", message, target=str(certificate_file), hint=AUTHORITY_HINT)
    # A key alone is what a process leaves that dies here.
    key = key or _new_key(key_file)
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    # The name contains the key's identifier, so a client that trusts the authorities of two homes
    # can distinguish them.
    name = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Amphitrite"),
            x509.NameAttribute(NameOID.COMMON_NAME, f"Amphitrite authority {identifier.digest.hex()[:16]}"),
        ]
    )
    certificate = (
        _builder(name, name, key, AUTHORITY_FROM, AUTHORITY_UNTIL)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(key_cert_sign=True, crl_sign=True), critical=True)
        .add_extension(name_constraints.permitting(tuple(names)), critical=True)
        .add_extension(identifier, critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False)
        .sign(key, hashes.SHA256())
    )
    write_atomically(certificate_file, _pem(certificate), mode=0o644)
    return certificate, key


def _issue(
    authority: x509.Certificate,
    authority_key: ec.EllipticCurvePrivateKey,
    key: ec.EllipticCurvePrivateKey,
    names: list[x509.GeneralName],
    at: datetime,
) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Amphitrite server")])
    issuer_identifier = authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    return (
        _builder(subject, authority.subject, key, at - BACKDATE, at + timedelta(days=LEAF_DAYS))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(digital_signature=True), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(issuer_identifier), critical=False
        )
        .sign(authority_key, hashes.SHA256())
    )


def _is_valid(
    leaf: x509.Certificate,
    key: ec.EllipticCurvePrivateKey,
    authority: x509.Certificate,
    names: list[x509.GeneralName],
    at: datetime,
) -> bool:
    if not _matches(leaf, key) or leaf.not_valid_before_utc > at:
        return False
    if leaf.not_valid_after_utc - at < timedelta(days=RENEW_BEFORE_DAYS):
        return False
    try:
        covered = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound):
        return False
    return _is_issued_by(leaf, authority) and set(covered) == set(names)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, begin: datetime, end: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(end)
    )


def _key_usage(
    *, digital_signature: bool = False, key_cert_sign: bool = False, crl_sign: bool = False
) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        key_cert_sign=key_cert_sign,
        crl_sign=crl_sign,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general_names(hosts: Iterable[str]) -> list[x509.GeneralName]:
    return [_general_name(host) for host in sorted(set(hosts))]


def _not_permitted(directory: Path, authority: x509.Certificate, name: str) -> Error:
    domains = ", ".join(name_constraints.permitted(authority) or ())
    return Error(
        "BadArgument",
        f"the certificate authority of this server does not permit {name}, only {domains}",
        target="host",
        hint=f"for a new authority, which clients must then trust: rm {directory}/ca.pem {directory}/ca.key; "
        "or set ML_TLS_DIRECTORY to a certificate of yours",
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        pass
    try:
        return x509.DNSName(host.encode("idna").decode("ascii").lower())
    except ValueError as exc:
        message = f"{host!r} is neither a host name nor an IP address"
        raise Error("BadArgument", message, target="host") from exc


def _load(certificate: Path, key: Path) -> tuple[x509.Certificate | None, ec.EllipticCurvePrivateKey | None]:
    """What exists and is readable; anything else is created again."""
    loaded: x509.Certificate | None = None
    private: ec.EllipticCurvePrivateKey | None = None
    with suppress(FileNotFoundError, *_UNREADABLE):
        read = x509.load_pem_x509_certificate(certificate.read_bytes())
        read.public_key()  # It is parsed only when it is asked for, as are the extensions.
        list(read.extensions)
        loaded = read
    with suppress(FileNotFoundError, *_UNREADABLE):
        loaded_key = serialization.load_pem_private_key(key.read_bytes(), password=None)
        private = loaded_key if isinstance(loaded_key, ec.EllipticCurvePrivateKey) else None
    return loaded, private


def _is_authority(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> bool:
    """Whether it is the key's, and has its own signature: a changed byte has not."""
    return _matches(certificate, key) and _is_issued_by(certificate, certificate)


def _is_issued_by(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (InvalidSignature, *_UNREADABLE):
        return False
    return True


def _is_bundle(path: Path, authority: x509.Certificate) -> bool:
    """Which roots this machine has may have changed since it was written."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
    except ssl.SSLError:
        return False
    return path.read_bytes().endswith(_pem(authority))


def _matches(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> bool:
    return certificate.public_key() == key.public_key()


def _new_key(path: Path) -> ec.EllipticCurvePrivateKey:
    key = ec.generate_private_key(ec.SECP256R1())
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    write_atomically(path, text, mode=0o600)
    return key


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
