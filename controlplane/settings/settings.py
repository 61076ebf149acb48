"""The settings of one control plane: arguments over environment variables over defaults, read once.

Decides names, defaults and ranges of settings; ``cluster_settings``, ``token_settings`` and
``isolation_settings`` hold those of clusters, tokens and isolation. Must not know what is done with
them. ``database_url`` may contain a password, so it is never printed.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from amphitrite.controlplane.core.rules.deployment_rules import Bounds
from amphitrite.controlplane.settings import addresses, cluster_settings, isolation_settings, token_settings
from amphitrite.controlplane.settings import setting_values as values
from amphitrite.controlplane.settings.cluster_settings import ClusterSettings
from amphitrite.controlplane.settings.home import Home
from amphitrite.controlplane.settings.isolation_settings import IsolationSettings
from amphitrite.controlplane.settings.token_settings import TokenSettings
from amphitrite.schemas.errors import Error

RUNTIMES = ("local", "kubernetes")
DATAPLANES = ("embedded", "external")
LOG_FORMATS = ("json", "text")
LOG_DESTINATIONS = ("file", "stdout")
LOG_LEVELS = ("debug", "info", "warning", "error")


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits that an operator may change with ``ML_LIMIT_<NAME>``."""

    deployments_per_endpoint: int = 20
    instances_per_deployment: int = 50
    request_timeout_ms: int = 180_000
    #: Bytes of a JSON body for the control plane.
    json_body_bytes: int = 4 * 1024**2
    #: Bytes of one uploaded model file (``store.content.blob_store.Limits.file_bytes``).
    file_bytes: int = 10 * 1024**3
    #: Bytes of the body of a scoring request
    #: (``dataplane.table.routing_table.RoutingTable.max_body_bytes``).
    scoring_body_bytes: int = 100 * 1024**2
    #: The same of a body whose length is not announced, which proxies hold in memory
    #: (``RoutingTable.max_unsized_body_bytes``).
    scoring_unsized_body_bytes: int = 16 * 1024**2

    @property
    def bounds(self) -> Bounds:
        """The limits that documents are checked against."""
        return Bounds(self.deployments_per_endpoint, self.instances_per_deployment, self.request_timeout_ms)

    @staticmethod
    def variable(name: str) -> str:
        """The environment variable of a limit."""
        return f"ML_LIMIT_{name.upper()}"


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that may differ between two control planes of the same version.

    * ``models_url``: ``file:///DIRECTORY`` or ``s3://BUCKET[/PREFIX]``.
    * ``dataplane``: ``external`` if proxies run elsewhere and connect by themselves.
    * ``public_api_url``, ``public_scoring_url``: the URLs for clients, None for the addresses that
      are listened on.
    * ``scoring_domain``: endpoints are also available as ``<name>.<scoring_domain>``, and clients
      get that URL.
    * ``tls_directory`` (tls.crt, tls.key, ca.crt) and ``credentials_directory``: provided files,
      which are only read; None for files of our own.
    """

    home: Home
    host: str = "127.0.0.1"
    port: int = 8443
    scoring_port: int = 9443
    runtime: str = "local"
    dataplane: str = "embedded"
    database_url: str = field(default="", repr=False)
    models_url: str = ""
    public_api_url: str | None = None
    public_scoring_url: str | None = None
    scoring_domain: str | None = None
    tls_directory: Path | None = None
    credentials_directory: Path | None = None
    log_format: str = "json"
    log_to: str = "file"
    log_level: str = "info"
    subscription: str = "local"
    resource_group: str = "local"
    workspace: str = "local"
    location: str = "local"
    #: Image repositories to treat as Triton, besides ``tritonserver``
    #: (``core.desired.images.Image.matches``).
    local_triton_images: tuple[str, ...] = ()
    #: Name of the registry that the workspace names, from which clusters pull
    #: ``<name>.azurecr.io/...``.
    container_registry: str = "amphitrite"
    limits: Limits = Limits()
    cluster: ClusterSettings = field(default_factory=ClusterSettings)
    tokens: TokenSettings = field(default_factory=TokenSettings)
    isolation: IsolationSettings = field(default_factory=IsolationSettings)

    @property
    def api_url(self) -> str:
        """``https://HOST:PORT`` of the control plane, for clients."""
        return self.public_api_url or addresses.url(self.host, self.port)

    @property
    def scoring_url(self) -> str:
        """``https://HOST:SCORING_PORT``; the scoring URI of an endpoint is ``/endpoints/<name>/``
        below it."""
        return self.public_scoring_url or addresses.url(self.host, self.scoring_port)

    def scoring_uri(self, endpoint: str) -> str:
        """The scoring URI of ``endpoint``, by host name if there is a scoring domain, otherwise by
        path. It ends with a slash."""
        if self.scoring_domain is None:
            return f"{self.scoring_url}/endpoints/{endpoint}/"
        return addresses.url_for_host(self.scoring_url, f"{endpoint.lower()}.{self.scoring_domain}")

    @property
    def fetch_url(self) -> str:
        """The URL of the control plane for pods."""
        return self.cluster.fetch_url or self.api_url

    @property
    def embedded(self) -> bool:
        """Whether this process runs an agent and its Envoy."""
        return self.dataplane == "embedded"

    @property
    def credentials(self) -> Path:
        """The directory with ``token``, ``agent-token``, ``identity-header`` and ``fetch-key``."""
        return self.credentials_directory or self.home.credentials


def read(
    environ: Mapping[str, str],
    *,
    home: Path | None = None,
    host: str | None = None,
    port: int | None = None,
    scoring_port: int | None = None,
    scoring_domain: str | None = None,
    runtime: str | None = None,
    database_url: str | None = None,
    models_url: str | None = None,
    kubeconfig: Path | None = None,
    namespace: str | None = None,
    isolation: str | None = None,
) -> Settings:
    """The settings from arguments (None: not given) over ``environ`` over defaults.

    Variables: ``ML_HOME``, ``ML_HOST``, ``ML_PORT``, ``ML_SCORING_PORT``, ``ML_RUNTIME``,
    ``ML_DATAPLANE``, ``ML_DATABASE_URL``, ``ML_MODELS_URL``, ``ML_API_URL``, ``ML_SCORING_URL``,
    ``ML_SCORING_DOMAIN``, ``ML_TLS_DIRECTORY``, ``ML_CREDENTIALS_DIRECTORY``, ``ML_LOG_FORMAT``,
    ``ML_LOG_LEVEL``, ``ML_LOG_TO``, ``ML_SUBSCRIPTION``, ``ML_RESOURCE_GROUP``,
    ``ML_WORKSPACE``, ``ML_LOCAL_TRITON_IMAGES``, ``ML_CONTAINER_REGISTRY``, ``ML_LIMIT_*``, and
    those of ``cluster_settings``, ``token_settings`` and ``isolation_settings``.

    Raises Error("BadArgument") that names the setting and what is allowed.
    """
    place = find_home(environ, home)
    default = Settings(place)
    settings = Settings(
        home=place,
        host=host or environ.get("ML_HOST") or default.host,
        port=values.port("port", port, environ.get("ML_PORT"), default.port),
        scoring_port=values.port("scoring-port", scoring_port, environ.get("ML_SCORING_PORT"), default.scoring_port),
        runtime=values.choice("runtime", runtime or environ.get("ML_RUNTIME") or default.runtime, RUNTIMES),
        dataplane=values.choice("ML_DATAPLANE", environ.get("ML_DATAPLANE") or default.dataplane, DATAPLANES),
        database_url=_database(database_url or environ.get("ML_DATABASE_URL") or f"sqlite:///{place.database}"),
        models_url=_models(models_url or environ.get("ML_MODELS_URL") or f"file://{place.models}"),
        public_api_url=values.https_url("ML_API_URL", environ.get("ML_API_URL")),
        public_scoring_url=values.https_url("ML_SCORING_URL", environ.get("ML_SCORING_URL")),
        scoring_domain=values.domain("scoring-domain", scoring_domain or environ.get("ML_SCORING_DOMAIN")),
        tls_directory=_directory("ML_TLS_DIRECTORY", environ),
        credentials_directory=_directory("ML_CREDENTIALS_DIRECTORY", environ),
        log_format=values.choice("ML_LOG_FORMAT", environ.get("ML_LOG_FORMAT") or default.log_format, LOG_FORMATS),
        log_level=values.choice("ML_LOG_LEVEL", environ.get("ML_LOG_LEVEL") or default.log_level, LOG_LEVELS),
        log_to=values.choice("ML_LOG_TO", environ.get("ML_LOG_TO") or default.log_to, LOG_DESTINATIONS),
        subscription=environ.get("ML_SUBSCRIPTION") or default.subscription,
        resource_group=environ.get("ML_RESOURCE_GROUP") or default.resource_group,
        workspace=environ.get("ML_WORKSPACE") or default.workspace,
        local_triton_images=values.names(environ.get("ML_LOCAL_TRITON_IMAGES")),
        container_registry=values.registry("ML_CONTAINER_REGISTRY", environ.get("ML_CONTAINER_REGISTRY"))
        or default.container_registry,
        limits=_limits(environ),
        cluster=cluster_settings.read(environ, kubeconfig=kubeconfig, namespace=namespace, host=socket.gethostname()),
        tokens=token_settings.read(environ),
        isolation=isolation_settings.read(environ, mode=isolation),
    )
    _check(settings, environ)
    return settings


def find_home(environ: Mapping[str, str], home: Path | None = None) -> Home:
    """``home``, otherwise ``ML_HOME``, otherwise ``~/.amphitrite``.

    Raises Error("BadArgument") if the user has no home directory.
    """
    try:
        root = home or Path(environ.get("ML_HOME") or Path.home() / ".amphitrite")
        return Home(root.expanduser().absolute())
    except RuntimeError as exc:  # No HOME, and no such user in passwd(5).
        message = "this user has no home directory"
        raise Error("BadArgument", message, target="ML_HOME", hint="set ML_HOME to a directory") from exc


def _check(settings: Settings, environ: Mapping[str, str]) -> None:
    """Rules for combinations of settings."""
    if settings.embedded and settings.port == settings.scoring_port:
        message = f"port and scoring-port are both {settings.port}; they must differ"
        raise Error("BadArgument", message, target="scoring-port", hint="set another --scoring-port")
    cluster = settings.cluster
    if settings.runtime == "kubernetes" or cluster.lease_name or cluster.table_secret:
        cluster_settings.require_cluster(cluster, environ)
    if cluster.lease_name and settings.database_url.startswith("sqlite:"):
        raise Error(
            "BadArgument",
            "control planes that elect a leader must share a database, and an SQLite file cannot be shared",
            target="ML_LEASE_NAME",
            hint="set ML_DATABASE_URL to postgresql+psycopg://..., or unset ML_LEASE_NAME",
        )


def _database(url: str) -> str:
    """The URL with our driver: operators' secrets often have ``postgresql://``."""
    scheme, _, rest = url.partition(":")
    if scheme in ("postgresql", "postgres"):
        return f"postgresql+psycopg:{rest}"
    if scheme not in ("sqlite", "postgresql+psycopg"):
        raise Error(
            "BadArgument",
            f"database: {scheme!r} is not supported; allowed: sqlite:///FILE, postgresql+psycopg://USER@HOST/NAME",
            target="database",
        )
    return url


def _models(url: str) -> str:
    if not re.fullmatch(r"file:///.*|s3://[^/]+(/.*)?", url):
        message = (
            f"models: {url.partition('://')[0]!r} is not supported; allowed: file:///DIRECTORY, s3://BUCKET/PREFIX"
        )
        raise Error("BadArgument", message, target="models")
    return url


def _directory(variable: str, environ: Mapping[str, str]) -> Path | None:
    if not environ.get(variable):
        return None
    path = Path(environ[variable]).absolute()
    if not path.is_dir():
        raise Error("BadArgument", f"{variable}: the directory {path} does not exist", target=variable)
    return path


def _limits(environ: Mapping[str, str]) -> Limits:
    limits = {}
    for limit in fields(Limits):
        name = Limits.variable(limit.name)
        limits[limit.name] = values.integer(name, environ.get(name), getattr(Limits(), limit.name))
        if limits[limit.name] < 1:
            raise Error("BadArgument", f"{name} is {limits[limit.name]}; allowed: 1 or more", target=name)
    return Limits(**limits)
