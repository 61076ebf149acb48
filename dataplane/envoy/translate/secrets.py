"""The listener's certificate as Envoy's ``Secret``.

Decides the name under which the listener asks for it. Must not know where the files are or when
they change.
"""

from __future__ import annotations

from typing import Any

CERTIFICATE = "scoring-certificate"


def certificate(chain_pem: str, private_key_pem: str) -> dict[str, Any]:
    """A ``Secret`` message with a certificate chain and its key, both as PEM text."""
    return {
        "name": CERTIFICATE,
        "tls_certificate": {
            "certificate_chain": {"inline_string": chain_pem},
            "private_key": {"inline_string": private_key_pem},
        },
    }
