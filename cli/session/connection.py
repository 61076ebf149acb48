"""Which control plane a command talks to, and with which credentials.

Decides the precedence (``--server-url``, ``ML_SERVER_URL``, ``ML_HOME``), that the token in ML_HOME
is sent only to the server of ML_HOME, and which certificates are trusted: for a remote server the
system's, and those in ``ML_CA_FILE``. Must not know what is requested.
"""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from amphitrite.cli.terminal import home_directory
from amphitrite.cli.terminal.options import Options, scope
from amphitrite.schemas.errors import Error

if TYPE_CHECKING:
    from amphitrite.cli.session.rest_client import Client

START_HINT = "run `ml server start -d`"


@dataclass(frozen=True, slots=True)
class Server:
    """A control plane and its credentials.

    ``local``: it is the one of ML_HOME, so no HTTP proxy is used.
    """

    url: str
    token: str | None
    ca_file: Path | None
    local: bool


def default_url(environ: Mapping[str, str] = os.environ) -> str:
    """The address on which ``ml server start`` listens."""
    return f"https://{environ.get('ML_HOST') or '127.0.0.1'}:{environ.get('ML_PORT') or 8443}"


def find_server(server_url: str | None, environ: Mapping[str, str] = os.environ) -> Server:
    """The control plane to talk to.

    Raises Error ServerUnreachable if no address is set and no server was started in ML_HOME.
    """
    state = home_directory.read_state(home_directory.path(environ))
    own_url = str(state["api_url"]).rstrip("/") if state else None
    url = (server_url or environ.get("ML_SERVER_URL") or own_url or "").rstrip("/")
    token = environ.get("ML_TOKEN")
    if not url:
        raise Error("ServerUnreachable", f"no control plane at {default_url(environ)}", hint=START_HINT)
    if not url.startswith("https://"):
        raise Error("UsageError", f"the address of the control plane must begin with https://; found `{url}`")
    if state is None or url != own_url:
        return Server(url, token, _ca_file(environ), local=False)
    return Server(url, token or _read_token(Path(state["token_file"])), Path(state["ca_file"]), local=True)


def find_remote_server(server_url: str | None, environ: Mapping[str, str] = os.environ) -> Server | None:
    """The remote control plane of ``--server-url`` or ``ML_SERVER_URL``; None without one.

    Raises Error UsageError.
    """
    if not (server_url or environ.get("ML_SERVER_URL")):
        return None
    server = find_server(server_url, environ)
    return None if server.local else server


def connect(options: Options) -> Client:
    """A client for the control plane that ``options`` and the environment select."""
    server = find_server(options.server_url)
    import httpx

    from amphitrite.cli.session.rest_client import Client
    from amphitrite.cli.terminal.request_trace import Trace

    http = httpx.Client(
        base_url=server.url,
        verify=ssl_context(server),
        trust_env=not server.local,
        headers={**_authorization(server), "Amphitrite-Author": quote(_author())},
        timeout=httpx.Timeout(60.0, connect=5.0),
    )
    hint = START_HINT if server.local else "check --server-url and ML_SERVER_URL"
    return Client(http, scope(options), trace=Trace.of(options), unreachable_hint=hint)


def _authorization(server: Server) -> dict[str, str]:
    return {"Authorization": f"Bearer {server.token}"} if server.token else {}


def _author() -> str:
    """Who histories say has made a change: ``ML_AUTHOR``, else the user and the machine."""
    if said := os.environ.get("ML_AUTHOR"):
        return said[:255]
    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except (KeyError, OSError):  # A container's user without a name.
        return f"{os.getuid()}@{socket.gethostname()}"


def _ca_file(environ: Mapping[str, str]) -> Path | None:
    return Path(environ["ML_CA_FILE"]).expanduser().absolute() if environ.get("ML_CA_FILE") else None


def _read_token(path: Path) -> str:
    try:
        token = path.read_bytes().strip()
    except PermissionError as exc:
        raise home_directory.permission_denied(path) from exc
    except OSError as exc:
        raise Error("LocalFileError", f"cannot read the token in ML_HOME: {exc}") from exc
    if not all(0x21 <= byte <= 0x7E for byte in token):
        hint = "the file is damaged: restore it from a backup, or remove it and start the server again for a new one"
        raise Error("LocalFileError", f"{path} is not one line of text", target=str(path), hint=hint)
    return token.decode("ascii")


def ssl_context(server: Server) -> Any:
    """The SSL context: for the server of ML_HOME only its own certificate authority is trusted.

    For a remote server the system's roots (or SSL_CERT_FILE) and ML_CA_FILE are trusted.
    """
    import ssl

    try:
        if server.local:
            return ssl.create_default_context(cafile=str(server.ca_file) if server.ca_file else None)
        context = ssl.create_default_context()
        if server.ca_file is not None:
            context.load_verify_locations(server.ca_file)
        return context
    except (OSError, ssl.SSLError) as exc:
        place = "in ML_HOME" if server.local else "in ML_CA_FILE"
        raise Error(
            "LocalFileError", f"cannot read the certificate authority {place}, {server.ca_file}: {exc}"
        ) from exc
