"""How a function becomes a verb of the command line.

Decides that every verb takes the global options, that its return value is printed, and that a group
is imported when it is used. Must not know what verbs do.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from amphitrite.cli.session import help_pages, interruption
from amphitrite.cli.session.session import Session
from amphitrite.cli.terminal import arguments
from amphitrite.cli.terminal.options import DECLARATIONS, Options

if TYPE_CHECKING:
    from amphitrite.cli.terminal.tables import Table

Verb = TypeVar("Verb", bound=Callable[..., Any])


#: The options of the generic update. Their order on the command line matters.
EDITS = frozenset({"--set", "--add", "--remove"})


class Command(TyperCommand):
    """A verb with abbreviated long options, several values for repeatable options, and examples in
    its help."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        taken: set[str] = set()
        for option in self.params:
            # The global options come last: a verb's own -w is its own. The long name is left.
            option.opts = [spelling for spelling in option.opts if spelling not in taken]
            taken.update(option.opts)
            if option.param_type_name == "option" and not getattr(option, "is_flag", False):
                option.metavar = option.metavar or ("NUMBER" if "int" in option.type.name else "VALUE")

    def format_options(self, ctx: Any, formatter: Any) -> None:
        help_pages.write_command(self, ctx, formatter)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        options = arguments.OptionTable.of(self.params)
        args = _expand(ctx, args, options)
        edits = EDITS if options.repeatable >= EDITS else frozenset()
        return super().parse_args(
            ctx, arguments.repeat_options(arguments.join_edit_values(args, edits), options.repeatable - edits)
        )


def _expand(ctx: Any, args: list[str], options: arguments.OptionTable, *, to_first_word: bool = False) -> list[str]:
    try:
        return arguments.expand_abbreviations(args, options, to_first_word=to_first_word)
    except ValueError as exc:
        ctx.fail(str(exc))
        raise


#: The package of the verbs.
VERBS = "amphitrite.cli.verbs"


class Group(TyperGroup):
    """A group whose help has its commands first, none of them cut."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        help_pages.write_group(self, ctx, formatter, self.summaries())

    def summaries(self) -> list[tuple[str, str]]:
        """(name, summary) of each command that is not hidden; imports none."""
        return [(name, help_pages.summary(one)) for name, one in self.commands.items() if not one.hidden]


class LazyGroup(Group):
    """A group whose subcommands are imported only when they are used."""

    #: name -> (module of ``amphitrite.cli.verbs`` with ``app``, or ``module:function`` of a verb;
    #: summary for the help). An empty summary hides an alias, or a verb that takes any words.
    groups: ClassVar[Mapping[str, tuple[str, str]]] = {}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, _expand(ctx, args, arguments.OptionTable.of(self.params), to_first_word=True))

    def list_commands(self, ctx: Any) -> list[str]:
        return [*self.groups, *super().list_commands(ctx)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.groups:
            return super().get_command(ctx, cmd_name)
        name, _, function = self.groups[cmd_name][0].partition(":")
        module = importlib.import_module(f"{VERBS}.{name}")
        if not function:
            return typer.main.get_command(module.app)
        app = group(cmd_name, "")
        verb(app, cmd_name, any_words=not self.groups[cmd_name][1])(getattr(module, function))
        return typer.main.get_command(app)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        names = self.list_commands(ctx)
        if args[0] not in names and not args[0].startswith("-"):
            near = self._in_groups(ctx, args[0]) or get_close_matches(args[0], names, n=1)
            meant = ", ".join(f"'{name}'" for name in near)
            ctx.fail(f"No such command '{args[0]}'." + (f" Did you mean {meant}?" if near else ""))
        return super().resolve_command(ctx, args)

    def _in_groups(self, ctx: Any, word: str) -> list[str]:
        """``start`` -> ``server start``: the commands of this name, else those with it as a word.

        Imports all groups.
        """
        shown = [name for name, (module, summary) in self.groups.items() if summary and ":" not in module]
        found = [(name, one) for name in shown for one in getattr(self.get_command(ctx, name), "commands", ())]
        same = [f"{name} {one}" for name, one in found if one == word]
        return same or [f"{name} {one}" for name, one in found if word in one.split("-")]

    def summaries(self) -> list[tuple[str, str]]:
        lazy = [(name, summary) for name, (_, summary) in self.groups.items() if summary]
        return lazy + super().summaries()


def group(name: str, summary: str, cls: type[TyperGroup] = Group) -> typer.Typer:
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


def verb(
    app: typer.Typer,
    name: str,
    *,
    columns: Sequence[str] = (),
    table: Callable[..., Table] | None = None,
    any_words: bool = False,
) -> Callable[[Verb], Verb]:
    """Make ``function(session, **options)`` a verb of ``app``.

    Its return value is printed according to ``--output`` and ``--query``; None is not printed.
    ``columns``: the columns of its table. ``table(session, value, **options)`` makes its table if
    that takes more than columns. ``any_words``: accept undeclared arguments, for a verb that only
    explains why it is not supported; no help lists it.
    """

    def register(function: Verb) -> Verb:
        def invoke(context: typer.Context, **values: Any) -> None:
            inner = Options(**{field: values.pop(field) for field in DECLARATIONS})
            session: Session = context.obj.with_options(inner)
            with interruption.ending_the_line():
                result = function(session, **values)
            if result is not None:
                session.print(result, columns, None if table is None else partial(table, **values))

        own_parameters = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
        set_signature(invoke, [*own_parameters, *global_parameters()], function.__doc__)
        anything = {"ignore_unknown_options": any_words, "allow_extra_args": any_words}
        app.command(name, cls=Command, context_settings=anything, hidden=any_words)(invoke)
        return function

    return register


def global_parameters() -> list[inspect.Parameter]:
    """The global options as parameters for typer."""
    absent = Options()
    return [parameter(field, kind, getattr(absent, field)) for field, kind in DECLARATIONS.items()]


def parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    """An option as a parameter for typer."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def set_signature(function: Any, parameters: Sequence[inspect.Parameter], doc: str | None) -> None:
    """Give ``function(context, **values)`` the signature and the docstring that typer reads."""
    context = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    named = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]
    function.__signature__ = inspect.Signature([context, *named])
    function.__annotations__ = {p.name: p.annotation for p in (context, *named)}
    function.__doc__ = doc
