"""All explanations, and how one is found.

Decides the order of the sections, what counts as near, and the text of one explanation. Must not
know what any code means.
"""

from __future__ import annotations

import textwrap
from dataclasses import replace
from difflib import get_close_matches

from amphitrite.schemas.errors import CLIENT_CODES, CODES, Error
from amphitrite.schemas.explanations.azure_names import AZURE_NAMES
from amphitrite.schemas.explanations.blob_storage import BLOB_STORAGE
from amphitrite.schemas.explanations.command_line import COMMAND_LINE
from amphitrite.schemas.explanations.explanation import Explanation, Section
from amphitrite.schemas.explanations.failed_deployments import FAILED_DEPLOYMENTS
from amphitrite.schemas.explanations.refused_requests import REFUSED_REQUESTS
from amphitrite.schemas.explanations.scoring_answers import SCORING_ANSWERS


def _with_status(section: Section) -> Section:
    statuses = {code: status for code, status in CODES.items() if code not in CLIENT_CODES}
    return replace(section, entries=tuple(replace(one, status=statuses.get(one.code)) for one in section.entries))


SECTIONS = tuple(
    _with_status(section)
    for section in (
        REFUSED_REQUESTS,
        FAILED_DEPLOYMENTS,
        SCORING_ANSWERS,
        COMMAND_LINE,
        BLOB_STORAGE,
        AZURE_NAMES,
    )
)
EXPLANATIONS = {one.code: one for section in SECTIONS for one in section.entries}


def find(name: str) -> tuple[Explanation, ...]:
    """The explanation of a code, in any case; for an HTTP status those of all its codes.

    Raises Error ResourceNotFound with the closest code as the hint.
    """
    if name.isdigit():
        found = tuple(one for one in EXPLANATIONS.values() if str(one.status) == name)
        if not found:
            raise Error("ResourceNotFound", f"no code has the HTTP status {name}", hint=_ALL)
        return found
    by_lower = {code.lower(): code for code in EXPLANATIONS}
    if name.lower() in by_lower:
        return (EXPLANATIONS[by_lower[name.lower()]],)
    near = get_close_matches(name.lower(), by_lower, n=1)
    hint = f"did you mean {by_lower[near[0]]}?" if near else _ALL
    raise Error("ResourceNotFound", f"there is no error code {name}", target=name, hint=hint)


_ALL = "run `ml explain` to see all codes"


def index(width: int) -> list[str]:
    """All codes below the titles of their sections, in lines of at most ``width`` columns."""
    lines: list[str] = []
    for section in SECTIONS:
        codes = " ".join(one.code for one in section.entries)
        lines += ["", f"{section.title}:"] if lines else [f"{section.title}:"]
        lines += textwrap.wrap(codes, width, initial_indent="  ", subsequent_indent="  ")
    return lines


def text(one: Explanation, width: int) -> str:
    """The explanation in lines of at most ``width`` columns, with a final newline."""
    status = "" if one.status is None else f" (HTTP {one.status})"
    lines = [f"{one.code}{status}", *textwrap.wrap(one.meaning, width)]
    for cause, remedy in one.remedies:
        lines += ["", *_bullet("cause: ", cause, width), *_bullet("do:    ", remedy, width)]
    return "\n".join(lines) + "\n"


def _bullet(label: str, words: str, width: int) -> list[str]:
    indent = " " * (len(label) + 2)
    return textwrap.wrap(words, width, initial_indent=f"  {label}", subsequent_indent=indent, break_on_hyphens=False)
