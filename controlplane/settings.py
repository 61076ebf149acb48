"""How one control plane is set up: command-line arguments over environment over defaults, read once.

Decides names, defaults and ranges of settings. Must not know what is done with them. Passwords in ``database_url`` make
it a value that is never printed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from amphitrite.controlplane import addresses
from amphitrite.controlplane.core.rules import Bounds
from amphitrite.controlplane.home import Home
from amphitrite.schemas.errors import Error


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds that an operator may move. Each is set by ``ML_LIMIT_<NAME>``."""

    deployments_per_endpoint: int = 20
    instances_per_deployment: int = 50
    request_timeout_ms: int = 180_000
    #: Bytes of a JSON body sent to the control plane.
    json_body_bytes: int = 4 * 1024**2
    #: Bytes of one uploaded model file (``store.blobs.Limits.file_bytes``).
    file_bytes: int = 10 * 1024**3
    #: Bytes of one scoring request's body (``dataplane.routing.RoutingTable.max_body_bytes``).
    scoring_body_bytes: int = 100 * 1024**2

    @property
    def bounds(self) -> Bounds:
        """Those that documents are judged by."""
        return Bounds(self.deployments_per_endpoint, self.instances_per_deployment, self.request_timeout_ms)

    @staticmethod
    def variable(name: str) -> str:
        """The environment variable that sets a limit."""
        return f"ML_LIMIT_{name.upper()}"


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that differs between two control planes of the same version."""

    home: Home
    host: str = "127.0.0.1"
    port: int = 8443
    scoring_port: int = 9443
    runtime: str = "local"
    database_url: str = field(default="", repr=False)
    subscription: str = "local"
    resource_group: str = "local"
    workspace: str = "local"
    location: str = "local"
    limits: Limits = Limits()

    @property
    def api_url(self) -> str:
        """``https://HOST:PORT`` of the control plane."""
        return addresses.url(self.host, self.port)

    @property
    def scoring_url(self) -> str:
        """``https://HOST:SCORING_PORT``; an endpoint's address is ``/endpoints/<name>/`` below it."""
        return addresses.url(self.host, self.scoring_port)


def read(
    environ: Mapping[str, str],
    *,
    home: Path | None = None,
    host: str | None = None,
    port: int | None = None,
    scoring_port: int | None = None,
    runtime: str | None = None,
    database_url: str | None = None,
) -> Settings:
    """Settings from arguments (None: not given) over ``environ`` over defaults.

    Variables: ``ML_HOME``, ``ML_HOST``, ``ML_PORT``, ``ML_SCORING_PORT``, ``ML_RUNTIME``, ``ML_DATABASE_URL``,
    ``ML_SUBSCRIPTION``, ``ML_RESOURCE_GROUP``, ``ML_WORKSPACE``, ``ML_LIMIT_*``. Raises Error("BadArgument") that names
    the setting, the value and what is allowed.
    """
    root = home or Path(environ.get("ML_HOME") or Path.home() / ".amphitrite")
    place = Home(root.expanduser().absolute())
    default = Settings(place)
    settings = Settings(
        home=place,
        host=host or environ.get("ML_HOST") or default.host,
        port=_port("port", port, environ.get("ML_PORT"), default.port),
        scoring_port=_port("scoring-port", scoring_port, environ.get("ML_SCORING_PORT"), default.scoring_port),
        runtime=runtime or environ.get("ML_RUNTIME") or default.runtime,
        database_url=database_url or environ.get("ML_DATABASE_URL") or f"sqlite:///{place.database}",
        subscription=environ.get("ML_SUBSCRIPTION") or default.subscription,
        resource_group=environ.get("ML_RESOURCE_GROUP") or default.resource_group,
        workspace=environ.get("ML_WORKSPACE") or default.workspace,
        limits=_limits(environ),
    )
    if settings.runtime != "local":
        raise Error(
            "BadArgument",
            f"runtime {settings.runtime!r} is not offered; allowed: local",
            target="runtime",
            hint="leave out --runtime",
        )
    if settings.port == settings.scoring_port:
        message = f"port and scoring-port are both {settings.port}"
        raise Error("BadArgument", message, target="scoring-port", hint="give --scoring-port another one")
    return settings


def _port(name: str, argument: int | None, text: str | None, default: int) -> int:
    value = argument if argument is not None else _integer(name, text, default)
    if not 1 <= value <= 65535:
        raise Error("BadArgument", f"{name} is {value}; allowed: 1 to 65535", target=name)
    return value


def _limits(environ: Mapping[str, str]) -> Limits:
    values = {}
    for limit in fields(Limits):
        name = Limits.variable(limit.name)
        default = getattr(Limits(), limit.name)
        values[limit.name] = _integer(name, environ.get(name), default)
        if values[limit.name] < 1:
            raise Error("BadArgument", f"{name} is {values[limit.name]}; allowed: 1 and more", target=name)
    return Limits(**values)


def _integer(name: str, text: str | None, default: int) -> int:
    if text is None or text == "":
        return default
    try:
        return int(text)
    except ValueError as exc:
        raise Error("BadArgument", f"{name} is {text!r}; a whole number is needed", target=name) from exc
