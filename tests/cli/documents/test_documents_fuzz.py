"""Whatever is in a file, what comes out is a document or one Error, never anything else."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from amphitrite.cli.documents.document_files import load_document, validate_and_normalize, with_assignments
from amphitrite.schemas import documents as schemas
from amphitrite.schemas import wire
from amphitrite.schemas.errors import Error

from ...fuzz import documents

VALID: dict[str, dict[str, Any]] = {
    "managed_online_endpoint": {
        "name": "my-endpoint",
        "auth_mode": "key",
        "traffic": {"blue": 90, "green": 10},
        "mirror_traffic": {},
        "tags": {"team": "vision"},
        "identity": {"type": "user_assigned", "user_assigned_identities": [{"resource_id": "x"}]},
    },
    "managed_online_deployment": {
        "name": "blue",
        "endpoint_name": "my-endpoint",
        "model": {"name": "m", "version": 1, "path": "./models", "type": "triton_model"},
        "environment": {"image": "i", "build": {"path": "."}},
        "instance_type": "Standard_NC6s_v3",
        "instance_count": 1,
        "environment_variables": {"A": 1},
        "request_settings": {"request_timeout_ms": 5000, "max_queue_wait_ms": 500},
        "readiness_probe": {"period": 2},
        "data_collector": {"collections": {"c": {"enabled": "true", "data": {"name": "d"}}}},
    },
    "model": {"name": "m", "version": 2, "path": "x", "flavors": {"f": {}}},
    "legacy_endpoint": {
        "name": "my-endpoint",
        "deployments": [{"name": "blue", "instance_type": "x", "model": "azureml:m:1"}],
    },
}
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12) | st.sampled_from(
    ["azureml:m", "2", "", "\0", "\n", "\ud800", "{{X}}", "kubernetes", "Key", "1e5", 10**30]
)  # fmt: skip
STRUCTURES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
)
FRAGMENTS = st.sampled_from(
    [
        *(
            "a: ",
            "- ",
            "\n",
            "  ",
            "{",
            "}",
            "[",
            "]",
            "&x ",
            "*x",
            "<<: ",
            "!!int ",
            "!!binary ",
            "!t ",
            "? ",
            ": ",
            "|\n",
        ),
        *(
            "---\n",
            "...\n",
            "%YAML 1.1\n",
            "'",
            '"',
            '"\\ud800"',
            '"\\U00110000"',
            "#",
            "\t",
            "{{N}}",
            "1.10",
            "0b",
            "~",
            "é",
        ),
    ]
)
PATHS: dict[str, list[tuple[str | int, ...]]] = {
    "managed_online_endpoint": [(), ("name",), ("traffic",), ("traffic", "blue"), ("identity",), ("extra",)],
    "managed_online_deployment": [
        *[("model",), ("model", "path"), ("model", "version"), ("environment",), ("environment", "build")],
        *[("data_collector",), ("data_collector", "collections", "c"), ("request_settings",), ("instance_count",)],
        *[("environment_variables", "A"), ("readiness_probe", "period"), ("type",), ("endpoint_name",)],
    ],
    "model": [("version",), ("flavors",), ("path",), ("name",), ("tags",)],
    "legacy_endpoint": [("deployments",), ("deployments", 0), ("deployments", 0, "name"), ("name",)],
}


@pytest.fixture(scope="module")
def file() -> Any:
    with tempfile.TemporaryDirectory() as directory:
        yield Path(directory) / "doc.yml"


def judge(file: Path, content: bytes, kind: str) -> None:
    file.write_bytes(content)
    try:
        document = validate_and_normalize(load_document(str(file)), kind)
    except Error as error:
        assert all(violation.location for violation in error.violations)
        str(error.to_body())
        return
    assert schemas.validate(kind, document) == []
    assert schemas.normalize(kind, document) == document


@given(content=st.binary(max_size=60), kind=st.sampled_from(schemas.KINDS))
def test_bytes(file: Path, content: bytes, kind: str) -> None:
    judge(file, content, kind)


@given(parts=st.lists(FRAGMENTS, max_size=15), kind=st.sampled_from(schemas.KINDS))
@settings(max_examples=150)
def test_fragments_of_yaml(file: Path, parts: list[str], kind: str) -> None:
    judge(file, "".join(parts).encode(), kind)


@given(data=st.data(), kind=st.sampled_from(sorted(VALID)), new=STRUCTURES)
@settings(max_examples=150)
def test_mutations_of_valid_documents(file: Path, data: st.DataObject, kind: str, new: Any) -> None:
    def replaced(value: Any, path: tuple[Any, ...]) -> Any:
        if not path:
            return new
        copy = list(value) if isinstance(value, list) else dict(value)
        below = copy[path[0]] if isinstance(copy, list) else copy.get(path[0], {})
        copy[path[0]] = replaced(below, path[1:])
        return copy

    mutated = replaced(VALID[kind], data.draw(st.sampled_from(PATHS[kind])))
    found = schemas.validate(kind, mutated)  # as the control plane does, without YAML
    if not found:
        schemas.normalize(kind, mutated)
    try:
        content = yaml.safe_dump(mutated, allow_unicode=True).encode()
    except UnicodeEncodeError:
        return
    judge(file, content, kind)


@given(
    text=st.text(max_size=30)
    | st.builds("{}={}".format, st.from_regex(r"[a-z.\[\]0-9]{1,12}", fullmatch=True), st.text())
)
def test_assignments(file: Path, text: str) -> None:
    file.write_text(yaml.safe_dump(VALID["managed_online_deployment"]))
    try:
        validate_and_normalize(with_assignments(load_document(str(file)), [text]), "managed_online_deployment")
    except Error as error:
        assert error.message


@given(
    document=st.fixed_dictionaries(
        {}, optional={key: st.just(value) for key, value in VALID["managed_online_deployment"].items()}
    )
)
def test_every_valid_deployment_survives_the_wire(document: dict[str, Any]) -> None:
    document = {**document, "name": "blue", "endpoint_name": "my-ep", "instance_type": "x", "instance_count": 1}
    document.update({key: f"azureml:{key}:1" for key in ("model", "environment") if key in document})
    document.pop("data_collector", None)
    assert schemas.validate("managed_online_deployment", document) == []
    document = schemas.normalize("managed_online_deployment", document)
    body = wire.deployment_to_wire(document, "here", lambda kind, reference: reference)
    assert wire.deployment_from_wire("my-ep", "blue", body) == document


def test_broken_documents_of_every_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small part of ``python -m tests.fuzz.documents``: no traceback, and every refusal says
    where."""
    monkeypatch.setenv("ML_HOME", str(tmp_path))
    assert sorted(documents.VALID) == sorted(schemas.KINDS)
    report = documents.run(300, seed=20)
    assert report.outcomes["refused"] > 200 and report.outcomes["taken"] > 10 and report.outcomes["command lines"]
    assert not report.failures, str(report)


@pytest.mark.parametrize("kind", sorted(documents.VALID))
def test_what_the_broken_ones_are_made_of_is_valid(kind: str) -> None:
    assert schemas.validate(kind, documents.VALID[kind]) == []
