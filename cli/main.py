"""The program ``ml``: its groups, and the one place where an Error ends.

Decides exit codes and that a traceback is shown only under ``--debug``. Must not know any verb.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import typer

from amphitrite.cli.session.session import Connect, Session
from amphitrite.cli.session.verb_declaration import LazyGroup, declare, global_parameters, group, parameter
from amphitrite.cli.terminal import error_output
from amphitrite.cli.terminal.options import Options
from amphitrite.schemas.errors import Error

#: The parser's errors, whichever click this typer carries: UsageError and below.
USAGE: Any = typer.BadParameter.__mro__[1]


class Root(LazyGroup):
    """The groups; an empty summary hides an alias from the list."""

    groups: ClassVar[Mapping[str, tuple[str, str]]] = {
        "online-endpoint": (
            "amphitrite.cli.verbs.endpoint",
            "Scoring addresses, their traffic and keys (short: endpoint).",
        ),
        "online-deployment": (
            "amphitrite.cli.verbs.deployment",
            "Models that serve behind an endpoint (short: deployment).",
        ),
        "model": ("amphitrite.cli.verbs.model", "Immutable, numbered versions of model files."),
        "environment": ("amphitrite.cli.verbs.environment", "Immutable, numbered versions of container images."),
        "compute": ("amphitrite.cli.verbs.compute", "Kubernetes clusters on which instances run."),
        "workspace": ("amphitrite.cli.verbs.workspace", "The workspace that everything lives in."),
        "server": ("amphitrite.cli.verbs.server", "The control plane and data plane on this machine."),
        "apply": (
            "amphitrite.cli.verbs.apply:apply",
            "Create or update what YAML documents say, in one or many files.",
        ),
        "diff": ("amphitrite.cli.verbs.apply:diff", "Show what ml apply would do, field by field."),
        "configure": ("amphitrite.cli.verbs.configure", "Set the names that commands take where none is given."),
        "account": ("amphitrite.cli.verbs.account", "The subscription that commands take where none is given."),
        "completion": ("amphitrite.cli.verbs.completion", "Print a script that completes commands in a shell."),
        "version": ("amphitrite.cli.main:version", "Print the version."),
        "endpoint": ("amphitrite.cli.verbs.endpoint", ""),
        "deployment": ("amphitrite.cli.verbs.deployment", ""),
    }


def _version() -> str:
    from importlib.metadata import version

    return version("amphitrite")


def _print_version(value: bool) -> None:
    if value:
        sys.stdout.write(f"{_version()}\n")
        raise typer.Exit


def program() -> Any:
    """The whole command line, as the parser has it; its groups are imported when they are used."""
    app = group("ml", "Azure ML's managed online endpoints on your own machines.", cls=Root)

    def root(context: typer.Context, **values: Any) -> None:
        values.pop("version")
        context.obj = Session(Options(**values), context.obj)

    option = typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    declare(root, [*global_parameters(), parameter("version", Annotated[bool, option], False)], None)
    app.callback()(root)
    return typer.main.get_command(app)


def version(session: Session) -> dict[str, str]:
    """Print the version."""
    return {"amphitrite": _version()}


def main(arguments: Sequence[str], connect: Connect) -> int:
    """Run one command; its exit code. ``connect`` opens the connection when a verb first needs it."""
    debug = any(word in ("--debug", "--debu", "--deb") for word in arguments)
    try:
        outcome = program()(args=list(arguments), prog_name="ml", obj=connect, standalone_mode=False)
        sys.stdout.flush()
        return outcome if isinstance(outcome, int) else 0
    except BrokenPipeError:
        # Whoever read has seen enough. The descriptor is replaced so that the interpreter's last flush is quiet, too.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return error_output.FAILED
    except (KeyboardInterrupt, typer.Abort):
        return error_output.INTERRUPTED
    except USAGE as exc:
        if type(exc).__name__ == "NoArgsIsHelpError":  # the help is its message
            sys.stderr.write(exc.format_message() + "\n")
            return error_output.USAGE
        return _fail(_usage(exc), debug)
    except Error as error:
        return _fail(error, debug)
    except OSError as exc:  # a full disk behind stdout, say
        return _fail(Error("LocalFileError", str(exc)), debug)
    except Exception as exc:
        if debug:
            raise
        message = f"this is a fault of ml: {type(exc).__name__}: {exc}"
        return _fail(Error("InternalServerError", message, hint="--debug shows where it happened"), debug)


def _fail(error: Error, debug: bool) -> int:
    if debug:
        import traceback

        traceback.print_exception(error)
    sys.stderr.write(error_output.render(error))
    return error_output.exit_code(error)


def _usage(exc: Any) -> Error:
    """A wrong command line: what is wrong, and where the right one is described."""
    path = exc.ctx.command_path if exc.ctx is not None else "ml"
    return Error("UsageError", exc.format_message(), hint=f"{path} --help")


def run() -> None:
    """The console script."""
    from amphitrite.cli.session.connection import connect

    # Python has None where the caller has closed the descriptor.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    sys.exit(main(sys.argv[1:], connect))
