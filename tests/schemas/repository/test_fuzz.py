"""Whatever a repository holds, the answer is a list of findings."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from amphitrite.schemas.repository.config import fields

from .memory import MODEL, judged
from .test_validation import ENSEMBLE, IO, PYTHON

_NAMES = sorted({name for message in fields.table().messages.values() for name in message})
_WORDS = sorted({word for enum in fields.table().enums.values() for word in enum})
_PIECES = st.sampled_from(
    [*_NAMES, *_WORDS, *"{}<>[]:,;#'\"-", "\n", "0", "1.5", "0x1", '"x"', '"m"', "true", "-1", "\\"]
)
_CONFIGS = st.one_of(
    st.text(max_size=200),
    st.lists(_PIECES, max_size=60).map(" ".join),
    st.tuples(st.sampled_from([IO, ENSEMBLE]), st.integers(0, 300), _PIECES).map(
        lambda t: t[0][: t[1]] + t[2] + t[0][t[1] :]
    ),
)


@settings(max_examples=300, deadline=None)
@given(_CONFIGS)
def test_any_configuration(config: str) -> None:
    raw = config.encode("utf-8", errors="replace")
    for finding in judged({"m/1/model.onnx": MODEL, "m/config.pbtxt": raw, "e/config.pbtxt": ENSEMBLE}):
        assert finding.message and str(finding)


@settings(max_examples=200, deadline=None)
@given(st.one_of(st.binary(max_size=100), st.tuples(st.integers(0, len(MODEL)), st.binary(max_size=4)).map(
    lambda t: MODEL[: t[0]] + t[1] + MODEL[t[0] + len(t[1]) :]
)))  # fmt: skip
def test_any_model(content: bytes) -> None:
    judged({"m/1/model.onnx": content})


@settings(max_examples=100, deadline=None)
@given(st.tuples(st.integers(0, len(PYTHON)), st.text(max_size=4)))
def test_any_python(change: tuple[int, str]) -> None:
    text = PYTHON[: change[0]] + change[1] + PYTHON[change[0] :]
    judged({"m/1/model.py": text.encode("utf-8", errors="replace")})


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.text(alphabet="am01/.-+ é\\", min_size=1, max_size=12).filter(lambda p: p.strip("/") == p), max_size=6)
)
def test_any_paths(paths: list[str]) -> None:
    judged(dict.fromkeys(paths, b""))
