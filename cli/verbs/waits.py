"""The options of ``wait``: those of ``az ... wait``.

Decides their names and defaults, and what an expression of ``--custom`` means. Must not know what
is waited for (``resources.waiting``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from amphitrite.schemas.errors import Error

if TYPE_CHECKING:
    from amphitrite.cli.resources.waiting import Condition

#: Seconds between two looks (az waits 30), and the longest wait (az's).
INTERVAL_S, TIMEOUT_S = 1.0, 3600.0

Created = Annotated[bool, typer.Option("--created", help="Wait until it exists and its provisioning has succeeded.")]
Updated = Annotated[bool, typer.Option("--updated", help="Wait until its last change has succeeded.")]
Deleted = Annotated[bool, typer.Option("--deleted", help="Wait until it does not exist any more.")]
Exists = Annotated[bool, typer.Option("--exists", help="Wait until it exists, in whatever state.")]
Custom = Annotated[
    str | None,
    typer.Option(
        "--custom",
        metavar="JMESPATH",
        help="Wait until this expression is true for what show prints: \"provisioning_state!='Updating'\".",
    ),
]
Interval = Annotated[float, typer.Option("--interval", min=0.05, metavar="SECONDS", help="Seconds between two looks.")]
Timeout = Annotated[float, typer.Option("--timeout", min=0, metavar="SECONDS", help="Longest wait.")]


def condition(*, created: bool, updated: bool, deleted: bool, exists: bool, custom: str | None) -> Condition:
    """What to wait for. Raises Error UsageError for an invalid expression."""
    from amphitrite.cli.resources.waiting import Condition

    if custom is None:
        return Condition(created, updated, deleted, exists)
    _result({}, custom)
    return Condition(created, updated, deleted, exists, lambda shown: bool(_result(shown, custom)))


def _result(shown: Mapping[str, Any], expression: str) -> Any:
    from amphitrite.cli.terminal.output import select

    try:
        return select(shown, expression)
    except Error as error:
        raise Error(error.code, error.message.replace("--query", "--custom"), hint=error.hint) from error
