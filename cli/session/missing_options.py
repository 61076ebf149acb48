"""The names from which a user chooses when a required option is missing.

Decides that they are looked up at once or not at all, as for completion, and how many are named.
Must not know verbs.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from amphitrite.cli.session.session import Session
from amphitrite.cli.terminal.options import Options

_NAMED_MAX = 10


def candidates(error: Any) -> str | None:
    """``blue, green``: the values of the option that the parser's ``error`` misses.

    None for another error, and if the control plane does not answer quickly or knows none.
    """
    context, option = error.ctx, getattr(error, "param", None)
    if type(error).__name__ != "MissingParameter" or context is None or option is None:
        return None
    if not isinstance(context.obj, Session):
        return None
    from amphitrite.cli.session.completion_values import values
    from amphitrite.cli.session.quick_names import QuickNames

    given = {name: value for name, value in context.params.items() if value is not None}
    chosen = {name: value for name, value in given.items() if isinstance(value, str)}
    inner = Options(**{field.name: given[field.name] for field in fields(Options) if field.name in given})
    options = inner.merged_with(context.obj.options)
    try:
        found = values(context.command_path.split()[1:], option.name, chosen, "", QuickNames(options))
    except Exception:  # The command line is wrong; this is only its hint.
        return None
    names = [one.name for one in found]
    more = f" and {len(names) - _NAMED_MAX} more" if len(names) > _NAMED_MAX else ""
    return ", ".join(names[:_NAMED_MAX]) + more if names else None
