"""The names that our own certificate authority may sign for.

Decides the permitted domains of a new authority, and whether an existing one permits a name.
Clients enforce it (RFC 5280, section 4.2.1.10): with the authority's key nobody can pretend to be a
named host outside. Must not know files or listening addresses.

Addresses are not limited. BoringSSL, and gRPC with it, refuses every certificate that names an
address if the authority has a constraint on addresses ("unsupported constraint type").
"""

from __future__ import annotations

from collections.abc import Iterable

from cryptography import x509


def permitting(names: Iterable[x509.GeneralName]) -> x509.NameConstraints:
    """The constraints of an authority for ``names``: ``localhost`` and the domains among them, with
    all subdomains."""
    domains = {"localhost", *(_domain(name) for name in names if isinstance(name, x509.DNSName))}
    return x509.NameConstraints([x509.DNSName(domain) for domain in sorted(domains)], None)


def permits(authority: x509.Certificate, name: x509.GeneralName) -> bool:
    """Whether ``authority`` may sign for ``name``. One without constraints, of an earlier release,
    signs for any."""
    domains = permitted(authority)
    if domains is None or not isinstance(name, x509.DNSName):
        return True
    domain = _domain(name)
    return any(domain == one or domain.endswith(f".{one}") for one in domains)


def permitted(authority: x509.Certificate) -> list[str] | None:
    """The domains that ``authority`` permits; None: any."""
    try:
        constraints = authority.extensions.get_extension_for_class(x509.NameConstraints).value
    except x509.ExtensionNotFound:
        return None
    return [one.value for one in constraints.permitted_subtrees or [] if isinstance(one, x509.DNSName)]


def _domain(name: x509.DNSName) -> str:
    return name.value.removeprefix("*.")
