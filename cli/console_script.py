"""Where the command ``ml`` begins: an interrupt ends it without a traceback, also while it imports.

Decides the exit code of an interrupt that comes before :mod:`amphitrite.cli.main` can see it. Must
not import anything of ours, or any other slow module, outside of the function.
"""

from __future__ import annotations

import sys

#: That of ``cli.terminal.exit_codes``, whose import may be what is interrupted.
_INTERRUPTED = 130


def run() -> None:
    """The console script."""
    try:
        from amphitrite.cli import main

        main.run()
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
