"""Data as text: az's output formats and ``--query``.

Decides how a value is written to stdout. Must not know which verb it comes from; the verb passes
the columns of its table.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from amphitrite.cli.terminal.tables import Column, layout, single_line
from amphitrite.schemas.errors import Error

#: The formats for people. ``wide`` has the columns of ``table`` and more.
TABLES = ("table", "wide")


def render(value: Any, form: str, *, columns: Sequence[str] = (), color: bool = False) -> str:
    """``value`` (JSON types) in the format ``form``, with a final newline; empty for ``none``.

    ``columns``: the keys that a table shows; all scalar ones if empty. ``color``: for ``jsonc``,
    ``yamlc`` and the states in a table. Raises Error UsageError for a table without columns.
    """
    if form == "none":
        return ""
    if form == "tsv":
        return _tsv(value)
    if form in TABLES:
        return _table(value, columns, color)
    text = _yaml(value) if form.startswith("yaml") else json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    return _colored(text, form[:4]) if color and form.endswith("c") else text


def select(value: Any, query: str) -> Any:
    """The result of the JMESPath expression ``query``. Raises Error UsageError if it is not one."""
    import jmespath
    from jmespath.exceptions import JMESPathError

    try:
        # The class marks objects that the expression itself makes: they keep their order (see
        # _cells).
        return jmespath.search(query, value, jmespath.Options(dict_cls=OrderedDict))
    except (JMESPathError, ValueError) as exc:
        reason = " ".join(str(exc).split())
        raise Error("UsageError", f"--query: {reason}", hint="see jmespath.org for the syntax") from exc


def _yaml(value: Any) -> str:
    import yaml

    plain = json.loads(json.dumps(value))
    text: str = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, default_flow_style=False)
    return text.removesuffix("...\n")  # PyYAML's end mark after a single scalar


def _colored(text: str, language: str) -> str:
    import io

    from rich.console import Console
    from rich.syntax import Syntax

    console = Console(file=io.StringIO(), force_terminal=True, soft_wrap=True)
    console.print(Syntax("", language, theme="ansi_dark").highlight(text), end="")
    colored: str = console.file.getvalue()  # type: ignore[attr-defined]
    return colored


def _tsv(value: Any) -> str:
    """az's rules: one row for each item; nothing for null; a scalar without quotes."""
    if value is None:
        return ""
    rows = value if isinstance(value, list) else [value]
    return "".join("\t".join(_cells(row)) + "\n" for row in rows)


def _cells(row: Any) -> list[str]:
    """az's rules: values sorted by key, or in the query's order if the query made the object."""
    if isinstance(row, Mapping):
        keys = list(row) if isinstance(row, OrderedDict) else sorted(row)
        return [_cell(row[name]) for name in keys]
    if isinstance(row, list):
        return [_cell(item) for item in row]
    return [str(row).lower() if isinstance(row, bool) else str(row)]


def _cell(item: Any) -> str:
    """az's rules inside a row: a list is shown as its length, an object as an empty cell."""
    if isinstance(item, list):
        return str(len(item))
    return "" if isinstance(item, Mapping) else str(item)


#: Keys that az leaves out of a table without chosen columns.
_HIDDEN_KEYS = frozenset({"id", "type", "etag"})


def _table(value: Any, columns: Sequence[str], color: bool) -> str:
    """Aligned plain text: a heading, a rule, a line for each object; empty without objects.

    Raises Error UsageError if no value can be shown in a table.
    """
    items = value if isinstance(value, list) else [value]
    rows = [_column_cells(item, columns) if columns and isinstance(item, Mapping) else _row(item) for item in items]
    if not rows:
        return ""
    names = list(dict.fromkeys(name for row in rows for name in row))
    if not names:
        hint = "choose columns, for example with --query '[].{Name:name}'"
        raise Error("UsageError", "the result has no values that a table can show", target="--output", hint=hint)
    names = [name for name in columns if name in names] or names
    shown = [Column(_heading(name, columns), is_state=color and name in columns and name in _STATES) for name in names]
    return layout(shown, [[row.get(name, "") for name in names] for row in rows])


def _column_cells(item: Mapping[str, Any], columns: Sequence[str]) -> dict[str, str]:
    """The cells of a verb's columns that are not empty; without any, az's cells."""
    row = {name: text for name in columns if (text := _column_cell(item.get(name)))}
    return row or _row(item)


def _column_cell(item: Any) -> str | None:
    """A flat mapping (traffic, tags) as ``blue=90 green=10``; None for anything deeper."""
    if isinstance(item, Mapping):
        if any(isinstance(share, list | Mapping) for share in item.values()):
            return None
        return " ".join(f"{name}={share}" for name, share in item.items())
    if item is None or isinstance(item, list):
        return None
    return _single_line(str(item).lower() if isinstance(item, bool) else item)


def _row(item: Any) -> dict[str, str]:
    """az's rules: the scalars of an object; all items of a list, in numbered columns."""
    if isinstance(item, Mapping):
        cells = {name: cell for name, cell in item.items() if name not in _HIDDEN_KEYS and cell is not None}
        return {name: _single_line(cell) for name, cell in cells.items() if not isinstance(cell, list | Mapping)}
    if isinstance(item, list):
        return {f"column{i}": "" if cell is None else _single_line(cell) for i, cell in enumerate(item, 1)}
    return {"result": "" if item is None else _single_line(item)}


def _single_line(item: Any) -> str:
    """On one line; lists and objects as JSON."""
    text = json.dumps(item, ensure_ascii=False) if isinstance(item, list | Mapping) else str(item)
    return single_line(text)


#: The columns of verbs whose values have colours on a terminal.
_STATES = frozenset({"state"})
#: The headings of a verb's columns whose values have a unit, or whose name is hard to read.
_HEADINGS = {
    "v_cp_us": "vCPUs",
    "memory_gb": "Memory (GB)",
    "gpus": "GPUs",
    "gpu_class": "GPU class",
    "api_url": "API URL",
    "scoring_url": "Scoring URL",
    "pid": "PID",
}


def _heading(name: str, columns: Sequence[str]) -> str:
    """``created_at`` -> ``Created at`` in a verb's table; in another one only the first letter
    changes."""
    if name not in columns:
        return name[:1].upper() + name[1:]
    words = name.replace("_", " ")
    return _HEADINGS.get(name) or words[:1].upper() + words[1:]
