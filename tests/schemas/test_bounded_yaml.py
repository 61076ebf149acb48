"""YAML of others: what is read as usual, and what costs more than it is worth."""

from __future__ import annotations

import pytest
import yaml

from amphitrite.schemas import bounded_yaml


def bomb(line: str, levels: int = 30) -> str:
    """Each level names the one before it several times."""
    return "\n".join(["a0: &a0 {k: v}", *(line.format(n, n - 1) for n in range(1, levels))])


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "a: {b: [1, -2, 0, 1.5, true, no, ~, null, x, '7', \"é\"], c: }",
        "base: &b {x: 1, y: 2}\na: {<<: *b, y: 3}\nb: [*b, *b]\nc: {<<: [*b, {z: 4}]}",
        "text: |\n  two\n  lines\nlong: 123456789012345678",
    ],
)
def test_usual_yaml_is_read_as_usual(text: str) -> None:
    assert bounded_yaml.load(text) == yaml.safe_load(text)


@pytest.mark.parametrize("number", ["1" * 19, "9" * 5000, "1:1:1", "0x1f", "1_000", "1e9", ".inf", "2026-11-23", "017"])
def test_other_numbers_and_dates_are_text(number: str) -> None:
    assert bounded_yaml.load(f"a: {number}") == {"a": number}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (bomb("a{0}: &a{0} {{<<: [*a{1}, *a{1}]}}"), "has more than 20000 values, with aliases expanded"),
        (bomb("a{0}: &a{0} [*a{1}, *a{1}, *a{1}]"), "has more than 20000 values"),
        (bomb("a{0}: &a{0} {{x: *a{1}, y: *a{1}, z: 1}}"), "has more than 20000 values"),
        ("a: [" + "x," * 20_000 + "]", "has more than 20000 values"),
        ("a: &a [*a]", "has an alias of itself or of nothing"),
        ("a: *b", "has an alias of itself or of nothing"),
        ("[" * 100_000, "is nested deeper than 64 levels"),
        ("a: {" * 60_000, "is nested deeper than 64 levels"),
        ("a: !!int '1:1:1'", "has a tag"),
        ("a: !!python/object/apply:os.system [x]", "has a tag"),
        ("a: &a !!set {x}", "has a tag"),
        ("{", "is not YAML at "),
        ("secret: very\n\tsecret", "is not YAML at 2:1"),
        ("a: 1\n---\nb: 2", "is not YAML"),
        ("[a]: 1", "is not YAML"),
        ("a: \x00", "is not YAML"),
    ],
)
def test_the_rest_is_refused_without_a_word_of_it(text: str, why: str) -> None:
    with pytest.raises(yaml.YAMLError) as caught:
        bounded_yaml.load(text)
    assert str(caught.value).startswith(why)
    assert "secret" not in str(caught.value)
