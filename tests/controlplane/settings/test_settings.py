"""Arguments over environment over defaults, and refusals that name the setting."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from amphitrite.controlplane.core.rules.deployment_rules import Bounds
from amphitrite.controlplane.settings import addresses, settings
from amphitrite.controlplane.settings.settings import Limits
from amphitrite.schemas.errors import Error


def test_defaults(tmp_path: Path) -> None:
    chosen = settings.read({"ML_HOME": str(tmp_path)})
    assert (chosen.api_url, chosen.scoring_url) == ("https://127.0.0.1:8443", "https://127.0.0.1:9443")
    assert (chosen.subscription, chosen.resource_group, chosen.workspace) == ("local", "local", "local")
    assert chosen.database_url == f"sqlite:///{tmp_path}/amphitrite.db"
    assert chosen.limits.bounds == Bounds()
    assert (chosen.local_triton_images, chosen.container_registry) == ((), "amphitrite")


def test_arguments_win_over_the_environment(tmp_path: Path) -> None:
    environment = {"ML_HOME": "/nowhere", "ML_PORT": "1", "ML_HOST": "a", "ML_LIMIT_INSTANCES_PER_DEPLOYMENT": "70"}
    environment |= {"ML_LOCAL_TRITON_IMAGES": "a/b, triton-*", "ML_CONTAINER_REGISTRY": "Contoso1"}
    chosen = settings.read(environment, home=tmp_path, port=2)
    assert chosen.local_triton_images == ("a/b", "triton-*")
    assert chosen.container_registry == "Contoso1"
    assert (chosen.home.root, chosen.host, chosen.port) == (tmp_path, "a", 2)
    assert chosen.limits.bounds.instances_per_deployment == 70


def test_a_password_in_the_databases_url_is_not_shown(tmp_path: Path) -> None:
    chosen = settings.read({"ML_DATABASE_URL": "postgresql://u:hunter2@h/d"}, home=tmp_path)
    assert chosen.database_url == "postgresql+psycopg://u:hunter2@h/d"
    assert "hunter2" not in repr(chosen)


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"ML_PORT": "70000"}, "port is 70000; allowed: 1 to 65535"),
        ({"ML_PORT": "9443"}, "port and scoring-port are both 9443; they must differ"),
        ({"ML_PORT": "many"}, "port is 'many'; it must be a whole number"),
        (
            {"ML_CONTAINER_REGISTRY": "contoso.azurecr.io"},
            "ML_CONTAINER_REGISTRY is 'contoso.azurecr.io'; allowed: 5 to 50 letters and digits, the name before "
            ".azurecr.io",
        ),
        ({"ML_RUNTIME": "magic"}, "runtime 'magic' is not supported; allowed: local, kubernetes"),
        ({"ML_LIMIT_JSON_BODY_BYTES": "0"}, "ML_LIMIT_JSON_BODY_BYTES is 0; allowed: 1 or more"),
        ({"ML_DATAPLANE": "none"}, "ML_DATAPLANE 'none' is not supported; allowed: embedded, external"),
        ({"ML_ISOLATION": "on"}, "isolation 'on' is not supported; allowed: auto, required, off"),
        ({"ML_ISOLATION_NETWORK": "x"}, "ML_ISOLATION_NETWORK 'x' is not supported; allowed: machine, none"),
        (
            {"ML_ISOLATION_READ": "/usr,data"},
            "ML_ISOLATION_READ has 'data'; allowed: absolute paths of directories, separated by commas",
        ),
        ({"ML_LOG_TO": "syslog"}, "ML_LOG_TO 'syslog' is not supported; allowed: file, stdout"),
        (
            {"ML_DATABASE_URL": "mysql://u:p@h/d"},
            "database: 'mysql' is not supported; allowed: sqlite:///FILE, postgresql+psycopg://USER@HOST/NAME",
        ),
        (
            {"ML_MODELS_URL": "ftp://h"},
            "models: 'ftp' is not supported; allowed: file:///DIRECTORY, s3://BUCKET/PREFIX",
        ),
        ({"ML_API_URL": "http://h"}, "ML_API_URL must have the form https://HOST[:PORT][/PATH]"),
        ({"ML_SCORING_URL": "https://u:p@h"}, "ML_SCORING_URL must have the form https://HOST[:PORT][/PATH]"),
        *(
            (
                {"ML_SCORING_DOMAIN": text},
                f"scoring-domain is '{text}'; it must be a domain such as ml.example.org, without a port or wildcard",
            )
            for text in ("*.ml.example.org", "ml.example.org:9443", "https://ml", "10.0.0.1", "-a.b", "a..b")
        ),
        ({"ML_TLS_DIRECTORY": "/not/there"}, "ML_TLS_DIRECTORY: the directory /not/there does not exist"),
        (
            {"ML_RUNTIME": "kubernetes"},
            "no cluster is configured: this process does not run in a pod, and no kubeconfig is set",
        ),
        ({"ML_RUNTIME": "kubernetes", "KUBECONFIG": "/a:/b"}, "the kubeconfig /a does not exist"),
        ({"ML_LEASE_NAME": "a/b"}, "ML_LEASE_NAME is 'a/b', which is not a valid name of a Kubernetes object"),
        (
            {"ML_MODEL_CACHE": "hostPath:relative"},
            "ML_MODEL_CACHE is 'hostPath:relative'; allowed: emptyDir, pvc:NAME, hostPath:/DIRECTORY, image:REPOSITORY",
        ),
        ({"ML_METRICS_FROM": "{}"}, "ML_METRICS_FROM is not a list of NetworkPolicyPeers in JSON"),
        ({"ML_METRICS_FROM": "[1]"}, "ML_METRICS_FROM is not a list of NetworkPolicyPeers in JSON"),
        (
            {"ML_INSTANCE_STORAGE_REQUESTS": "no"},
            "ML_INSTANCE_STORAGE_REQUESTS 'no' is not supported; allowed: true, false",
        ),
        ({"ML_PROXY_SELECTOR": "a"}, "ML_PROXY_SELECTOR: 'a' is not key=value"),
        (
            {"ML_LEASE_NAME": "one", "KUBERNETES_SERVICE_HOST": "10.0.0.1"},
            "control planes that elect a leader must share a database, and an SQLite file cannot be shared",
        ),
    ],
)
def test_refusals(environment: dict[str, str], message: str) -> None:
    with pytest.raises(Error) as caught:
        settings.read(environment)
    assert caught.value.message == message


def test_where_an_endpoint_is_scored(tmp_path: Path) -> None:
    by_path = settings.read({}, home=tmp_path)
    assert by_path.scoring_uri("Cats") == "https://127.0.0.1:9443/endpoints/Cats/"
    by_host = settings.read({"ML_SCORING_DOMAIN": "ML.example.org."}, home=tmp_path)
    assert (by_host.scoring_domain, by_host.scoring_uri("Cats")) == (
        "ml.example.org",
        "https://cats.ml.example.org:9443/",
    )
    elsewhere = {"ML_SCORING_URL": "https://scoring.example", "ML_SCORING_DOMAIN": "ml.example.org"}
    assert settings.read(elsewhere, home=tmp_path).scoring_uri("cats") == "https://cats.ml.example.org/"


def test_a_pod_of_a_cluster(tmp_path: Path) -> None:
    environment = {
        "KUBERNETES_SERVICE_HOST": "10.0.0.1",
        "KUBECONFIG": "/ignored/in/a/pod",
        "ML_RUNTIME": "kubernetes",
        "ML_DATAPLANE": "external",
        "ML_DATABASE_URL": "postgres://u@h/d",
        "ML_MODELS_URL": "s3://bucket/prefix",
        "ML_API_URL": "https://api.example/",
        "ML_SCORING_URL": "https://scoring.example:444",
        "ML_FETCH_URL": "https://controlplane.ns.svc:8443",
        "ML_TLS_DIRECTORY": str(tmp_path),
        "ML_POD_NAME": "controlplane-0",
        "ML_POD_NAMESPACE": "ns",
        "ML_LEASE_NAME": "controlplane",
        "ML_IMAGE_PULL_SECRETS": "one, two",
        "ML_PROXY_SELECTOR": "a=b,c=",
        "ML_METRICS_FROM": '[{"namespaceSelector": {}}]',
        "ML_INSTANCE_SCRATCH_BYTES": "1048576",
        "ML_INSTANCE_STORAGE_REQUESTS": "false",
        "ML_PORT": "9443",  # Nothing of ours listens on the scoring port.
    }
    chosen = settings.read(environment, home=tmp_path)
    cluster = chosen.cluster
    assert (chosen.api_url, chosen.scoring_url) == ("https://api.example", "https://scoring.example:444")
    assert (chosen.fetch_url, chosen.embedded) == ("https://controlplane.ns.svc:8443", False)
    assert chosen.database_url == "postgresql+psycopg://u@h/d"
    assert (cluster.kubeconfig, cluster.namespace, cluster.own_namespace) == (None, "ns", "ns")
    assert (cluster.identity, cluster.lease_name) == ("controlplane-0", "controlplane")
    assert (cluster.image_pull_secrets, cluster.proxy_selector) == (("one", "two"), {"a": "b", "c": ""})
    assert cluster.metrics_from == ({"namespaceSelector": {}},)
    assert (cluster.scratch_bytes, cluster.storage_requests) == (1024**2, False)


def test_the_first_kubeconfig_that_is_there_is_taken(tmp_path: Path) -> None:
    (tmp_path / "b").touch()
    listed = {"ML_RUNTIME": "kubernetes", "KUBECONFIG": f"{tmp_path}/a:{tmp_path}/b"}
    assert settings.read(listed, home=tmp_path).cluster.kubeconfig == tmp_path / "b"
    (tmp_path / "c").touch()
    chosen = settings.read({**listed, "ML_KUBECONFIG": f"{tmp_path}/c"}, home=tmp_path, namespace="ns")
    assert (chosen.cluster.kubeconfig, chosen.cluster.namespace) == (tmp_path / "c", "ns")


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "https://127.0.0.1:1"),
        ("::1", "https://[::1]:1"),
        ("box.lan", "https://box.lan:1"),
    ],
)
def test_urls(host: str, url: str) -> None:
    assert addresses.url(host, 1) == url


def test_a_wildcard_is_called_by_the_machines_name_and_covered_by_every_address() -> None:
    import socket

    assert addresses.url("0.0.0.0", 1) == f"https://{socket.gethostname()}:1"
    covered = {*addresses.certificate_hosts("0.0.0.0"), *addresses.machine_hosts("0.0.0.0")}
    assert set(addresses.machine_hosts("127.0.0.1")) == {socket.gethostname()}
    assert {"localhost", "127.0.0.1", "::1", socket.gethostname()} <= covered
    assert "0.0.0.0" not in covered
    assert {"10.1.2.3", "other"} <= set(addresses.certificate_hosts("10.1.2.3", ("other",)))


def test_every_variable_is_documented() -> None:
    """``docs/settings.md`` names what the sources read, and nothing else."""
    root = Path(__file__).parents[3]
    sources = [*root.glob("controlplane/**/*.py"), *root.glob("cli/**/*.py"), *root.glob("dataplane/**/*.py")]
    read = {name for source in sources for name in re.findall(r"\bML_[A-Z_]+[A-Z]\b", source.read_text("utf-8"))}
    limits = {Limits.variable(field.name) for field in fields(Limits)}
    told = set(re.findall(r"`(ML_[A-Z_]+)`", (root / "docs" / "settings.md").read_text("utf-8")))
    assert told == (read | limits) - {"ML_LIMIT"}
