"""The environment variables with which clients find a control plane and sign in.

Decides the variables for each way to connect (docs/connecting.md). Must not know how a server is
found. Outside contract: the variables of azure-identity, Azure ML's SDK, curl, Requests,
gRPC and Node.js.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from amphitrite.cli.session.connection import Server
from amphitrite.cli.terminal.options import Scope
from amphitrite.schemas.errors import Error

#: Name -> value. None: a variable of another way to connect, which must be unset.
Variables = Mapping[str, str | None]

_ALLOWED = {
    "shell": ("sh", "json"),
    "authentication": ("managed-identity", "environment"),
    "discovery": ("mfe", "metadata"),
}
#: The default certificate authorities of gRPC clients.
_GRPC_ROOTS = "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"
#: Node.js adds these authorities to its own when it starts.
_NODE_ROOTS = "NODE_EXTRA_CA_CERTS"
#: The only tenant and the only client of the server's identity provider.
_CLIENT = "amphitrite"


def check(**values: str) -> None:
    """Raises Error UsageError for a value that its option does not allow."""
    for option, value in values.items():
        if value not in _ALLOWED[option]:
            raise Error("UsageError", f"--{option}: found `{value}`; allowed: {', '.join(_ALLOWED[option])}")


def local_variables(state: Mapping[str, Any], authentication: str, discovery: str) -> Variables:
    """The variables for the server of this machine.

    ``state``: its ``server.json``. Raises Error LocalFileError.
    """
    secret = _read(state["identity_header_file"]).strip()
    bundle = state["bundle_file"]
    return {
        **_address(state["api_url"], discovery),
        **_sign_in(state, secret, authentication),
        "REQUESTS_CA_BUNDLE": bundle,
        "SSL_CERT_FILE": bundle,
        # curl prefers this variable to SSL_CERT_FILE, so an older value must not remain.
        "CURL_CA_BUNDLE": bundle,
        _GRPC_ROOTS: bundle,
        _NODE_ROOTS: bundle,
        "ML_SUBSCRIPTION": state["subscription"],
        "ML_RESOURCE_GROUP": state["resource_group"],
        "ML_WORKSPACE": state["workspace"],
    }


def remote_variables(server: Server, workspace_scope: Scope, authentication: str, discovery: str) -> Variables:
    """The variables for a remote server, as far as they are known here.

    Clients need ML_TOKEN as well.

    Raises Error Unsupported for a sign-in that needs the secret on the server's machine.
    """
    if authentication != "managed-identity":
        message = f"the client secret of {server.url} is stored on its machine only"
        hint = "read it there from credentials/identity-header, and set the variables in docs/connecting.md"
        raise Error("Unsupported", message, target="--authentication", hint=hint)
    variables: dict[str, str | None] = {**_address(server.url, discovery), "ML_SERVER_URL": server.url}
    if server.ca_file is not None:
        ca_file = str(server.ca_file)
        variables |= dict.fromkeys(("ML_CA_FILE", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "CURL_CA_BUNDLE"), ca_file)
        variables |= dict.fromkeys((_GRPC_ROOTS, _NODE_ROOTS), ca_file)
    scope_variables = {
        "ML_SUBSCRIPTION": workspace_scope.subscription,
        "ML_RESOURCE_GROUP": workspace_scope.resource_group,
        "ML_WORKSPACE": workspace_scope.workspace,
    }
    return {**variables, **scope_variables}


def shell_exports(variables: Variables) -> str:
    """Lines for a POSIX shell."""
    return "".join(
        f"unset {name}\n" if value is None else f"export {name}={shlex.quote(value)}\n"
        for name, value in variables.items()
    )


def _address(url: str, discovery: str) -> Variables:
    if discovery == "mfe":
        return {"AZUREML_DEV_URL_MFE": url}
    return {
        "ARM_CLOUD_METADATA_URL": f"{url}/metadata/endpoints?api-version=2022-09-01",
        "AZUREML_DEV_URL_MFE": None,
    }


def _sign_in(state: Mapping[str, Any], secret: str, authentication: str) -> Variables:
    if authentication == "managed-identity":
        return {"IDENTITY_ENDPOINT": state["identity_endpoint"], "IDENTITY_HEADER": secret}
    return {
        "AZURE_AUTHORITY_HOST": state["api_url"],
        "AZURE_TENANT_ID": _CLIENT,
        "AZURE_CLIENT_ID": _CLIENT,
        "AZURE_CLIENT_SECRET": secret,
        "IDENTITY_ENDPOINT": None,
        "IDENTITY_HEADER": None,
    }


def _read(file: str) -> str:
    try:
        return Path(file).read_text()
    except OSError as exc:
        raise Error("LocalFileError", f"cannot read {file}: {exc}") from exc
