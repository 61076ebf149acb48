"""The program ``ml``: one run of a command, and the one place where an Error ends.

Decides exit codes and that a traceback is shown only under ``--debug``. Must not know any verb.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

import typer

from amphitrite.cli.session.program import program
from amphitrite.cli.session.session import Connect
from amphitrite.cli.terminal import error_output
from amphitrite.schemas.errors import Error

#: The parser's errors, whichever click this typer carries: UsageError and below.
USAGE: Any = typer.BadParameter.__mro__[1]


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
