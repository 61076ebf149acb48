"""No code without an explanation, none explained twice, and each is found."""

from __future__ import annotations

import ast
import re
import runpy
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from amphitrite.controlplane.api.http import error_responses
from amphitrite.dataplane.envoy.translate.grpc_routes import STATUSES
from amphitrite.schemas.errors import CLIENT_CODES, CODES, SCORING_CODES, Error
from amphitrite.schemas.explanations import lookup
from amphitrite.schemas.explanations.azure_names import AZURE_NAMES

ROOT = Path(__file__).resolve().parents[2]
_CODE = re.compile(r"[A-Z][a-z]+(?:[A-Z][a-z]+)+")
#: Codes in details of a response, and Azure Storage's names for ours.
OTHERS = {"InvalidField", *error_responses.STORAGE_CODES.values()}


def proxy_codes() -> Iterator[str]:
    """The codes in the proxy's own answers: each follows its status in a call or a tuple, is what a
    function that makes a body begins with, or stands in a body."""
    for path in (ROOT / "dataplane" / "envoy").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        yield from re.findall(r'"code": "(\w+)"', text)
        for node in ast.walk(ast.parse(text)):
            parts = node.args if isinstance(node, ast.Call) else node.elts if isinstance(node, ast.Tuple) else []
            values = [part.value if isinstance(part, ast.Constant) else None for part in parts]
            for status, code in pairwise(values):
                if isinstance(status, int) and 400 <= status < 600 and isinstance(code, str) and _CODE.fullmatch(code):
                    yield code
            first = values[0] if values else None
            makes_body = isinstance(node, ast.Call) and re.search("body|format", ast.unparse(node.func))
            if makes_body and isinstance(first, str) and _CODE.fullmatch(first):
                yield first


def test_every_code_is_explained_and_every_explanation_has_a_code() -> None:
    ours = set(CODES) | OTHERS
    azure = {one.code for one in AZURE_NAMES.entries}
    assert set(lookup.EXPLANATIONS) == ours | azure
    assert azure & ours == set()
    entries = [one for section in lookup.SECTIONS for one in section.entries]
    assert len(entries) == len(lookup.EXPLANATIONS)
    assert [one.code for one in entries if not one.remedies] == []
    assert [one.code for one in entries if (one.status is None) != (one.code in CLIENT_CODES | OTHERS | azure)] == []


def test_every_code_of_the_proxy_is_known() -> None:
    found = {*proxy_codes(), *STATUSES}
    assert found >= {"NoTraffic", "ModelError", "TooManyRequests", "UnsupportedMediaType"}
    assert found - set(CODES) == set()
    sources = "".join(path.read_text() for path in (ROOT / "dataplane" / "envoy").rglob("*.py"))
    assert [code for code in SCORING_CODES if f'"{code}"' not in sources] == []


def test_the_page_is_up_to_date() -> None:
    made = runpy.run_path(str(ROOT / "docs" / "troubleshooting_page.py"))["page"]()
    written = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    assert written == made, "run: python docs/generate.py"


@pytest.mark.parametrize(
    ("name", "codes"),
    [
        ("NoTraffic", {"NoTraffic"}),
        ("outofquota", {"OutOfQuota"}),
        ("424", {"ModelError"}),
        ("408", {"RequestTimeout"}),
    ],
)
def test_a_code_or_a_status_is_found(name: str, codes: set[str]) -> None:
    assert {one.code for one in lookup.find(name)} == codes


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("NoTrafic", "did you mean NoTraffic?"),
        ("CrashLoopBackOff", "did you mean"),
        ("qqq", "run `ml explain` to see all codes"),
        ("299", "run `ml explain` to see all codes"),
    ],
)
def test_the_nearest_code_is_named(name: str, hint: str) -> None:
    with pytest.raises(Error) as refused:
        lookup.find(name)
    assert hint in str(refused.value.hint)


def test_lines_fit_the_terminal() -> None:
    lines = [line for one in lookup.EXPLANATIONS.values() for line in lookup.text(one, 80).splitlines()]
    lines += lookup.index(80)
    assert [line for line in lines if len(line) > 80] == []
