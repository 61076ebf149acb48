"""The names that our own certificate authority may sign for.

Decides the permitted names and addresses of a new authority, and whether an existing one permits a
name. Clients enforce it (RFC 5280, section 4.2.1.10): with the authority's key nobody can pretend
to be a host outside. Must not know files or listening addresses.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from cryptography import x509

#: Addresses that no public server has: loopback, private and link-local ones. A machine gets others
#: of them whenever it changes its network, and no certificate of a public server names one.
LOCAL_NETWORKS = (
    *("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16"),
    *("::1/128", "fc00::/7", "fe80::/10"),
)


def permitting(names: Iterable[x509.GeneralName]) -> x509.NameConstraints:
    """The constraints of an authority for ``names``: these with their subdomains, ``localhost``,
    and all local addresses."""
    domains = {"localhost", *(_domain(name) for name in names if isinstance(name, x509.DNSName))}
    networks: set[IPv4Network | IPv6Network] = {ip_network(one) for one in LOCAL_NETWORKS}
    chosen = (ip_network(str(name.value)) for name in names if isinstance(name, x509.IPAddress))
    networks |= {one for one in chosen if not any(one.network_address in each for each in networks)}
    subtrees: list[x509.GeneralName] = [x509.DNSName(domain) for domain in sorted(domains)]
    subtrees += [x509.IPAddress(one) for one in sorted(networks, key=lambda one: (one.version, one.network_address))]
    return x509.NameConstraints(permitted_subtrees=subtrees, excluded_subtrees=None)


def permits(authority: x509.Certificate, name: x509.GeneralName) -> bool:
    """Whether ``authority`` may sign for ``name``. One without constraints, of an earlier release,
    signs for any."""
    try:
        constraints = authority.extensions.get_extension_for_class(x509.NameConstraints).value
    except x509.ExtensionNotFound:
        return True
    permitted = constraints.permitted_subtrees or []
    if isinstance(name, x509.IPAddress):
        networks = [ip_network(str(one.value)) for one in permitted if isinstance(one, x509.IPAddress)]
        return any(ip_address(str(name.value)) in one for one in networks)
    if not isinstance(name, x509.DNSName):
        return False
    domain = _domain(name)
    bases = [one.value for one in permitted if isinstance(one, x509.DNSName)]
    return any(domain == base or domain.endswith(f".{base}") for base in bases)


def described(authority: x509.Certificate) -> str:
    """The names that ``authority`` permits, for a message, without the local addresses."""
    constraints = authority.extensions.get_extension_for_class(x509.NameConstraints).value
    texts = [str(one.value) for one in constraints.permitted_subtrees or []]
    return ", ".join([*(text for text in texts if text not in LOCAL_NETWORKS), "local addresses"])


def _domain(name: x509.DNSName) -> str:
    return name.value.removeprefix("*.")
