"""One run of a command: its options, its output, its connection to the control plane.

Decides what goes to stdout (data) and to stderr (messages), and that a connection is opened only
when a verb needs it. Must not know any verb.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import typer

from amphitrite.cli.session import interruption
from amphitrite.cli.terminal import exit_codes
from amphitrite.cli.terminal.options import Options
from amphitrite.cli.terminal.progress import Progress
from amphitrite.schemas.errors import Error

if TYPE_CHECKING:
    from amphitrite.cli.session.rest_client import Client
    from amphitrite.cli.terminal.tables import Table

#: Makes the table of a verb's result.
MakeTable = Callable[["Session", Any], "Table"]
#: Opens a connection for the given options.
Connect = Callable[[Options], "Client"]


class Session:
    """Made by ``main.main``.

    A verb gets its own session, with the options after the verb merged in.
    """

    def __init__(self, options: Options, connect: Connect) -> None:
        self.options = options
        #: Why the verb changes something, for the history of the resource.
        self.reason = ""
        self._connect = connect
        self._client: Client | None = None
        self._progress: Progress | None = None

    def with_options(self, inner: Options) -> Session:
        """A session with ``inner`` merged over the present options."""
        return Session(inner.merged_with(self.options), self._connect)

    @property
    def client(self) -> Client:
        """The client of the control plane.

        Raises Error ServerUnreachable if no control plane is known.
        """
        if self._client is None:
            self._client = self._connect(self.options)
            self._client.reason = self.reason
        return self._client

    def client_for(self, server_url: str) -> Client:
        """A client for this address, regardless of the options."""
        return self._connect(replace(self.options, server_url=server_url))

    def print(self, value: Any, columns: Sequence[str] = (), table: MakeTable | None = None) -> None:
        """Print data to stdout according to ``--output`` and ``--query``; nothing for None.

        ``columns`` and ``table``: the verb's own table, in one of two forms. As with az, the result
        of a query has a table of its own.

        Raises Error UsageError, and what ``table`` raises.
        """
        from amphitrite.cli.terminal import colors, output, tables

        if self.options.query is not None:
            value, columns, table = output.select(value, self.options.query), (), None
        if value is None:
            return
        form, color = self.options.output or "json", colors.enabled(sys.stdout)
        if table is None or form not in output.TABLES:
            sys.stdout.write(output.render(value, form, columns=columns, color=color))
            return
        made = table(self, value)
        sys.stdout.write(tables.render(made, wide=form == "wide", color=color))
        if not made.rows:
            self.note(made.empty)

    def note(self, text: str) -> None:
        """Print a line to stderr."""
        if self.options.only_show_errors:
            return
        if self._progress is not None and self._progress.is_drawing:
            self._progress.note(text)
        else:
            sys.stderr.write(text + "\n")

    def confirm(self, question: str, yes: bool) -> None:
        """Ask before something is deleted.

        ``question``: such as ``Delete model pets?``. Ends the command for the answer no, with exit
        code 1. Raises Error UsageError if stdin is not a terminal.
        """
        if yes:
            return
        if not sys.stdin.isatty():
            what = question[:1].lower() + question[1:].removesuffix("?")
            message = f"cannot ask whether to {what}: stdin is no terminal; nothing was changed"
            raise Error("UsageError", message, target="--yes", hint="add --yes")
        answer = ""
        try:
            while answer not in ("y", "yes", "n", "no"):
                sys.stderr.write(f"{question} (y/n): ")
                sys.stderr.flush()
                answer = (sys.stdin.readline() or "no").strip().lower()
        except KeyboardInterrupt:
            sys.stderr.write("\n")
            raise interruption.reported("nothing was changed") from None
        if answer in ("n", "no"):
            sys.stderr.write("nothing was changed\n")
            raise typer.Exit(exit_codes.FAILED)

    def progress(self, subject: str) -> Progress:
        """The progress of a long command; it prints nothing with ``--only-show-errors``.

        ``subject``: such as ``deployment/pictures/blue``.
        """
        if self.options.only_show_errors:
            return Progress(subject, mode="silent")
        live = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._progress = Progress(subject, mode="live" if live else "lines")
        return self._progress
