"""Tables and the resources made of them, side by side in ``golden/``; the real Envoy accepts every
one.

``pytest --update-golden`` rewrites the outputs and deletes those without an input.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from google.protobuf import any_pb2, json_format

from amphitrite.dataplane.envoy.process.binary import find_envoy
from amphitrite.dataplane.envoy.protobuf.messages import pack
from amphitrite.dataplane.envoy.translate.bootstrap import BootstrapSettings, bootstrap
from amphitrite.dataplane.envoy.translate.resources import CLUSTER, ENDPOINTS, EXTENSION, ROUTES, SCOPES
from amphitrite.dataplane.table.json_codec import from_json
from amphitrite.dataplane.table.routing_table import Address, RoutingTable

from .translation import translate

GOLDEN = Path(__file__).parent / "golden"
INPUTS = sorted(GOLDEN.glob("*.in.yaml"))


def read(path: Path) -> RoutingTable:
    """An input may leave out what has a usual value."""
    given = yaml.safe_load(path.read_text())
    routes = [{"auth": "key", "cors": [], **route} for route in given["routes"]]
    clusters = [{"sequences": False, **cluster} for cluster in given["clusters"]]
    return from_json({"issuers": [], **given, "routes": routes, "clusters": clusters})


def translated(path: Path) -> dict[str, Any]:
    """The resources. An input may say ``scoring_domain`` besides, which tables do not have."""
    return dict(translate(read(path), yaml.safe_load(path.read_text()).get("scoring_domain")))


def output(path: Path) -> Path:
    return path.with_name(path.name.replace(".in.yaml", ".out.yaml"))


def values(translated: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Plain values, through JSON so that none is shared (YAML would write anchors)."""
    made = {t.rpartition(".")[2]: {n: r.value for n, r in some.items()} for t, some in translated.items()}
    plain: dict[str, dict[str, Any]] = json.loads(json.dumps(made))
    return plain


def settings(directory: Path) -> BootstrapSettings:
    return BootstrapSettings(
        "local",
        Address("127.0.0.1", 9443),
        directory / "ads.sock",
        directory / "callouts.sock",
        directory / "answers.sock",
        directory / "admin.sock",
        directory / "access.log",
    )


@pytest.mark.parametrize("path", INPUTS, ids=lambda p: p.name)
def test_resources_are_as_recorded(path: Path, request: pytest.FixtureRequest) -> None:
    text = yaml.safe_dump(values(translated(path)), sort_keys=True, width=120)
    if request.config.getoption("--update-golden"):
        output(path).write_text(text)
    assert output(path).read_text() == text


def test_every_output_has_an_input(request: pytest.FixtureRequest) -> None:
    orphans = set(GOLDEN.glob("*.out.yaml")) - {output(path) for path in INPUTS}
    if request.config.getoption("--update-golden"):
        for path in orphans:
            path.unlink()
        orphans = set()
    assert orphans == set()


@pytest.mark.parametrize("path", INPUTS, ids=lambda p: p.name)
def test_resources_are_messages(path: Path) -> None:
    for type_url, named in translated(path).items():
        for resource in named.values():
            packed, known = pack(type_url, resource.value), any_pb2.Any()
            json_format.ParseDict({"@type": type_url, **resource.value}, known)
            assert packed.type_url == type_url
            # Not the bytes: the order within a map is anybody's.
            assert json_format.MessageToDict(packed) == json_format.MessageToDict(known)


@pytest.mark.parametrize(
    "value",
    [
        {"nobody": 1},
        {"name": 1},
        {"name": ["a"]},
        {"connect_timeout": "1"},
        {"connect_timeout": 1},
        {"connect_timeout": "1ss"},
        {"circuit_breakers": {"thresholds": [{"max_requests": "many"}]}},
        {"circuit_breakers": {"thresholds": [{"max_requests": -1}]}},
        {"circuit_breakers": {"thresholds": {"max_requests": 1}}},
        {"circuit_breakers": 1},
        {"type": "EDS", "cluster_type": {"name": "a"}},
        {"type": "NONE_SUCH"},
        {"typed_extension_protocol_options": {"a": {"@type": "type.googleapis.com/none.such"}}},
        {"typed_extension_protocol_options": {"a": {"name": "a"}}},
    ],
    ids=str,
)
def test_what_is_no_message_is_refused(value: dict[str, Any]) -> None:
    with pytest.raises(json_format.ParseError):
        json_format.ParseDict({"@type": CLUSTER, **value}, any_pb2.Any())
    with pytest.raises(ValueError, match=r"envoy\.config\.cluster\.v3\.Cluster"):
        pack(CLUSTER, value)


@pytest.mark.serving
@pytest.mark.parametrize("path", INPUTS, ids=lambda p: p.name)
def test_envoy_accepts_them(path: Path, tmp_path: Path) -> None:
    made = {t: {n: dict(r.value) for n, r in named.items()} for t, named in translated(path).items()}
    config = json.loads(json.dumps(bootstrap(settings(tmp_path))))
    clusters = config["static_resources"]["clusters"]
    for name, value in made[CLUSTER].items():
        value.pop("eds_cluster_config")
        clusters.append({**value, "type": "STATIC", "load_assignment": made[ENDPOINTS][name]})
    chain = config["static_resources"]["listeners"][0]["filter_chains"][0]
    manager = chain["filters"][0]["typed_config"]
    for found in manager["http_filters"]:
        if found.pop("config_discovery", None):
            found["typed_config"] = made[EXTENSION][found["name"]]["typed_config"]
    scoped = manager["scoped_routes"]
    if made[SCOPES]:
        del scoped["rds_config_source"], scoped["scoped_rds"]
        scoped["scoped_route_configurations_list"] = {
            "scoped_route_configurations": [
                {"name": name, "key": value["key"], "route_configuration": made[ROUTES][name]}
                for name, value in made[SCOPES].items()
            ]
        }
    file = tmp_path / "bootstrap.json"
    file.write_text(json.dumps(config))
    command = [str(find_envoy()), "--mode", "validate", "-c", str(file), "--disable-hot-restart", "-l", "warning"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_bootstrap_is_as_recorded(request: pytest.FixtureRequest) -> None:
    path = GOLDEN / "bootstrap.yaml"
    text = yaml.safe_dump(json.loads(json.dumps(bootstrap(settings(Path("/run"))))), sort_keys=True, width=120)
    if request.config.getoption("--update-golden"):
        path.write_text(text)
    assert path.read_text() == text


@pytest.mark.serving
@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_envoy_accepts_a_container_s_bootstrap(host: str, tmp_path: Path) -> None:
    contained = replace(settings(tmp_path), listen=Address(host, 9443), access_log=None, heap_bytes=256 * 1024 * 1024)
    contained = replace(contained, scoring_domain="ml.example.org")
    file = tmp_path / "bootstrap.json"
    file.write_text(json.dumps(bootstrap(contained)))
    command = [str(find_envoy()), "--mode", "validate", "-c", str(file), "--disable-hot-restart", "-l", "warning"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_bootstrap_holds_no_secret_and_no_way_in() -> None:
    config = bootstrap(settings(Path("/run")))
    assert config["admin"]["address"] == {"pipe": {"path": "/run/admin.sock", "mode": 0o600}}
    assert "private_key" not in json.dumps(config)


def test_a_change_of_weight_makes_one_new_resource() -> None:
    """What an unchanged endpoint costs is what makes a change cheap."""
    table = read(GOLDEN / "split-and-mirror.in.yaml")
    route = replace(table.routes[0], split=(("blue", 50), ("green", 50)))
    before, after = translate(table), translate(replace(table, routes=(route,)))
    different = {(t, n) for t in before for n in before[t] if before[t][n].version != after[t][n].version}
    assert different == {(ROUTES, "images")}
