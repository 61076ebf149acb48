"""Writes docs/troubleshooting.md: every code of an error, with its causes and what to do.

Decides how an explanation reads on a page. Must not add facts: a sentence that is missing here is
missing in ``schemas/explanations``. ``docs/generate.py`` runs it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

from amphitrite.schemas.explanations.explanation import Explanation
from amphitrite.schemas.explanations.lookup import SECTIONS

PAGE = Path(__file__).parent / "troubleshooting.md"
_WIDTH = 100
_HEAD = """\
# Troubleshooting

An error on the terminal ends with its code in brackets, and REST and scoring answers have it as
`code`. `ml explain CODE` prints the same as this page, without a server:

```console
$ ml online-endpoint show -n nope
error: endpoint 'nope' does not exist [ResourceNotFound]
hint: run `ml online-endpoint list` to see all endpoints
$ ml explain ResourceNotFound
```

`ml explain 404` lists the codes of an HTTP status. This page is generated from
`schemas/explanations/` by `docs/generate.py`. What can go wrong in a cluster besides is in
[Kubernetes](kubernetes.md#troubleshooting). Some lines of a healthy log sound like failures:
[instances without a GPU](model-repositories.md#instances-without-a-gpu).
"""


def page() -> str:
    """The whole page, in Markdown."""
    lines = [_HEAD.rstrip("\n"), "", "| section | codes |", "|---|---|"]
    for section in SECTIONS:
        codes = ", ".join(f"[{one.code}](#{one.code.lower()})" for one in section.entries)
        lines.append(f"| {section.title} | {codes} |")
    for section in SECTIONS:
        lines += ["", f"## {section.title}", "", *_wrap(section.about)]
        for one in section.entries:
            lines += ["", *_entry(one)]
    return "\n".join(lines) + "\n"


def _entry(one: Explanation) -> Iterator[str]:
    yield f"### {one.code}"
    yield ""
    yield from _wrap(one.meaning if one.status is None else f"HTTP {one.status}. {one.meaning}")
    yield ""
    yield "| cause | what to do |"
    yield "|---|---|"
    for cause, remedy in one.remedies:
        yield f"| {cause} | {remedy} |"


def _wrap(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, break_on_hyphens=False, break_long_words=False)


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
