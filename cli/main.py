"""The program ``ml``: runs one command and turns an Error into lines on stderr and an exit code.

Decides exit codes, and that a traceback is shown only with ``--debug``. Must not know any verb.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from typing import Any

import typer

from amphitrite.cli.session.program import program
from amphitrite.cli.session.session import Connect
from amphitrite.cli.terminal import exit_codes
from amphitrite.schemas import error_text
from amphitrite.schemas.errors import Error

#: The base class of the parser's errors. Typer may bring its own copy of click's UsageError.
USAGE: Any = typer.BadParameter.__mro__[1]


def main(arguments: Sequence[str], connect: Connect) -> int:
    """Run one command and return its exit code.

    ``connect`` opens the connection when a verb first needs it.
    """
    debug = any(word in ("--debug", "--debu", "--deb") for word in arguments)
    try:
        outcome = program()(args=list(arguments), prog_name="ml", obj=connect, standalone_mode=False)
        sys.stdout.flush()
        return outcome if isinstance(outcome, int) else 0
    except BrokenPipeError:
        _discard_output()  # The reader of the pipe is gone.
        return exit_codes.FAILED
    except (KeyboardInterrupt, typer.Abort):
        return exit_codes.INTERRUPTED
    except USAGE as exc:
        if type(exc).__name__ == "NoArgsIsHelpError":  # its message is the help text
            sys.stderr.write(exc.format_message() + "\n")
            return exit_codes.USAGE
        return _fail(_usage(exc), debug)
    except Error as error:
        return _fail(error, debug)
    except OSError as exc:
        if exc.errno == errno.ENOSPC and exc.filename is None:
            _discard_output()
            return _fail(Error("LocalFileError", f"cannot write the output: {exc.strerror}"), debug)
        return _fail(Error("LocalFileError", str(exc)), debug)
    except Exception as exc:
        if debug:
            raise
        message = f"internal error in ml: {type(exc).__name__}: {exc}"
        return _fail(Error("InternalServerError", message, hint="add --debug to see the traceback"), debug)


def _discard_output() -> None:
    """Without a new descriptor the interpreter's last flush would fail too."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(error: Error, debug: bool) -> int:
    if debug:
        import traceback

        traceback.print_exception(error)
    sys.stderr.write(error_text.render(error))
    return exit_codes.exit_code(error)


def _usage(exc: Any) -> Error:
    """A wrong command line; the hint names values of a missing option, and the help."""
    from amphitrite.cli.session import missing_options

    path = exc.ctx.command_path if exc.ctx is not None else "ml"
    names = missing_options.candidates(exc)
    choice = f"use one of {names}; or " if names else ""
    return Error("UsageError", exc.format_message(), hint=f"{choice}run `{path} --help`")


def run() -> None:
    """The console script."""
    from amphitrite.cli.session.connection import connect

    # Python sets a stream to None if the caller has closed its descriptor.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    sys.exit(main(sys.argv[1:], connect))
