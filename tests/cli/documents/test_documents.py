"""Files in, judged documents or one located error out."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from amphitrite.cli.documents.document_files import (
    Document,
    empty_document,
    load_document,
    validate_and_normalize,
    with_assignments,
    with_value,
)
from amphitrite.schemas.errors import Error

GOOD = """\
$schema: https://azuremlschemas.azureedge.net/latest/managedOnlineDeployment.schema.json
name: blue
endpoint_name: my-endpoint
model:
  name: efficientnet
  version: 1.10
  path: ./models
  type: triton_model
instance_type: Standard_NC6s_v3
instance_count: "2"
environment_variables: {MODE: 010, DEBUG: yes, DAY: 2026-11-20}
"""
BAD = """\
name: blue
endpoint_name: my-endpoint
auth_mode: kye
instance_cuont: 1
model:
    path: ./models
    type: onnx
environment_variables:
    ÄÖÜ: {a: 1}
request_settings: {request_timeout_ms: 0}
"""
BAD_ENDPOINT = "# a comment\nname: my-endpoint\ntraffic:\n  blue: 60\n  green: 30\nmirror_traffic: {blue: 10}\n"


def load(tmp_path: Path, text: str | bytes) -> Document:
    path = tmp_path / "doc.yml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_document(str(path))


def lines(error: Error, tmp_path: Path) -> list[str]:
    return [str(violation).replace(f"{tmp_path}/", "") for violation in error.violations]


def test_a_good_document_becomes_canonical(tmp_path: Path) -> None:
    document = load(tmp_path, GOOD)
    assert document.directory == tmp_path
    assert validate_and_normalize(document, "managed_online_deployment") == {
        "name": "blue",
        "endpoint_name": "my-endpoint",
        "model": {"name": "efficientnet", "version": "1.10", "path": "./models", "type": "triton_model"},
        "instance_type": "Standard_NC6s_v3",
        "instance_count": 2,
        "environment_variables": {"MODE": "010", "DEBUG": "yes", "DAY": "2026-11-20"},
    }


def test_every_problem_has_its_place(tmp_path: Path) -> None:
    with pytest.raises(Error) as caught:
        validate_and_normalize(load(tmp_path, BAD), "managed_online_deployment")
    assert (caught.value.code, caught.value.message) == ("InvalidDocument", f"{tmp_path}/doc.yml has 6 problems")
    assert lines(caught.value, tmp_path) == [
        "doc.yml:1:1: instance_type: required, but missing",
        "doc.yml:3:1: auth_mode: unknown field",
        "doc.yml:4:1: instance_cuont: unknown field",
        'doc.yml:7:11: model.type: must be one of custom_model, mlflow_model, triton_model; found "onnx"',
        "doc.yml:9:5: environment_variables.ÄÖÜ: must be text; found a mapping",
        "doc.yml:10:40: request_settings.request_timeout_ms: must be at least 1; found 0",
    ]


def test_rules_between_fields_have_a_place_too(tmp_path: Path) -> None:
    with pytest.raises(Error) as caught:
        validate_and_normalize(load(tmp_path, BAD_ENDPOINT), "managed_online_endpoint")
    assert lines(caught.value, tmp_path) == [
        "doc.yml:3:1: traffic: the percentages must sum to 0 or 100; found blue=60, green=30, which sum to 90",
        "doc.yml:6:24: mirror_traffic.blue: blue has live traffic; "
        "a deployment cannot have both live and mirrored traffic",
    ]


def test_what_an_option_set_is_located_at_the_option(tmp_path: Path) -> None:
    document = with_assignments(load(tmp_path, GOOD), ["instance_count=0", "model.version=1.20", "tags.team=a b"])
    document = with_value(document, ("endpoint_name",), "x", "--endpoint-name")
    with pytest.raises(Error) as caught:
        validate_and_normalize(document, "managed_online_deployment")
    assert lines(caught.value, tmp_path) == [
        '--endpoint-name: must have at least 3 characters; found "x"',
        "--set instance_count: must be at least 1; found 0",
    ]
    mended = validate_and_normalize(
        with_assignments(document, ["instance_count=3", "endpoint_name=other"]), "managed_online_deployment"
    )
    assert (mended["instance_count"], mended["model"]["version"], mended["tags"]) == (3, "1.20", {"team": "a b"})


def test_a_document_of_options_alone() -> None:
    document = with_value(empty_document(), ("name",), "my-endpoint", "--name")
    assert validate_and_normalize(document, "managed_online_endpoint") == {"name": "my-endpoint"}


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"name: x")))
    with pytest.raises(Error) as caught:
        validate_and_normalize(load_document("-"), "managed_online_endpoint")
    assert caught.value.violations[0].location == "<stdin>:1:7"


def test_a_template_says_which_placeholder_is_left(tmp_path: Path) -> None:
    for text in ("name: {{NAME}}\n", 'name: "{{ NAME }}"\n'):
        with pytest.raises(Error) as caught:
            validate_and_normalize(load(tmp_path, text), "managed_online_endpoint")
        assert caught.value.hint is not None
        assert "replace the placeholder {{" in caught.value.hint


@pytest.mark.parametrize(
    ("content", "code", "message"),
    [
        (b"a: \xff", "InvalidDocument", "doc.yml:1:4: not UTF-8: byte 0xff"),
        (b"# " + b"x" * (1 << 20), "LimitExceeded", "is too large; allowed: 1048576 bytes (1 MiB)"),
        (b"name: a\n---\nname: b\n", "InvalidDocument", "doc.yml:3:1: found 2 documents; allowed: one"),
        (b"", "InvalidDocument", "doc.yml:1:1: the document is empty"),
        (b"# nothing\n", "InvalidDocument", "doc.yml:1:1: the document is empty"),
    ],
)
def test_files_that_are_no_document(tmp_path: Path, content: bytes, code: str, message: str) -> None:
    with pytest.raises(Error) as caught:
        load(tmp_path, content)
    assert caught.value.code == code
    assert message in "\n".join([caught.value.message, *lines(caught.value, tmp_path)])


@pytest.mark.parametrize("path", ["", "no-such.yml", "/", "a\0b", "/proc/self/mem"])
def test_files_that_cannot_be_read(path: str) -> None:
    with pytest.raises(Error) as caught:
        load_document(path)
    assert caught.value.code == "LocalFileError"
