"""How a function becomes a verb of the command line.

Decides that every verb takes the global options, that ``--set a=b c=d`` means ``--set a=b --set c=d`` (as az reads it),
that a verb returns what is to be printed, and that a group is imported when it is used. Must not know what verbs do.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, ClassVar, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from amphitrite.cli.options import DECLARATIONS, Options
from amphitrite.cli.session import Session

Verb = TypeVar("Verb", bound=Callable[..., Any])


def spread(args: Sequence[str], repeatable: frozenset[str]) -> list[str]:
    """``--set a=b c=d`` -> ``--set a=b --set c=d``: every word up to the next option is a value of a repeatable one."""
    spelled: list[str] = []
    current: str | None = None
    has_value = False
    for word in args:
        if word.startswith("-"):
            name, equals, _ = word.partition("=")
            current, has_value = (name if name in repeatable else None), bool(equals)
        elif current is not None:
            if has_value:
                spelled.append(current)
            has_value = True
        spelled.append(word)
    return spelled


class Command(TyperCommand):
    """A verb whose repeatable options take several words at once."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        repeatable = frozenset(
            name for option in self.params if getattr(option, "multiple", False) for name in option.opts
        )
        return super().parse_args(ctx, spread(args, repeatable))


class LazyGroup(TyperGroup):
    """A group of groups that are only named here, so that help and short verbs need not import the others."""

    #: name -> (module with ``app``, summary for the help); an empty summary hides an alias.
    groups: ClassVar[Mapping[str, tuple[str, str]]] = {}

    def list_commands(self, ctx: Any) -> list[str]:
        return [*self.groups, *super().list_commands(ctx)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.groups:
            return super().get_command(ctx, cmd_name)
        return typer.main.get_command(importlib.import_module(self.groups[cmd_name][0]).app)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        names = self.list_commands(ctx)
        if args[0] not in names and not args[0].startswith("-"):
            near = get_close_matches(args[0], names, n=1)
            ctx.fail(f"No such command '{args[0]}'." + (f" Did you mean '{near[0]}'?" if near else ""))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        rows = [(name, summary) for name, (_, summary) in self.groups.items() if summary]
        rows += [(name, command.get_short_help_str(80)) for name, command in self.commands.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def group(name: str, summary: str, cls: type[TyperGroup] = TyperGroup) -> typer.Typer:
    """An empty group."""
    return typer.Typer(
        name=name,
        cls=cls,
        help=summary,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def verb(app: typer.Typer, name: str, *, columns: Sequence[str] = ()) -> Callable[[Verb], Verb]:
    """Make ``function(session, **options)`` a verb of ``app``.

    What it returns is printed as ``--output`` and ``--query`` say; None is not printed. ``columns`` are the table's.
    """

    def register(function: Verb) -> Verb:
        def invoke(context: typer.Context, **values: Any) -> None:
            inner = Options(**{field: values.pop(field) for field in DECLARATIONS})
            session: Session = context.obj.with_options(inner)
            result = function(session, **values)
            if result is not None:
                session.print(result, columns)

        own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
        declare(invoke, [*own, *global_parameters()], function.__doc__)
        app.command(name, cls=Command)(invoke)
        return function

    return register


def global_parameters() -> list[inspect.Parameter]:
    """The global options as typer reads them."""
    absent = Options()
    return [parameter(field, kind, getattr(absent, field)) for field, kind in DECLARATIONS.items()]


def parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    """An option as typer reads it."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def declare(function: Any, parameters: Sequence[inspect.Parameter], doc: str | None) -> None:
    """Give ``function(context, **values)`` the signature and text that typer is to read."""
    context = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    named = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]
    function.__signature__ = inspect.Signature([context, *named])
    function.__annotations__ = {p.name: p.annotation for p in (context, *named)}
    function.__doc__ = doc
