"""``ml completion``: completion scripts for shells, and the candidates that they offer.

Decides the candidates at the cursor: verbs, options, output formats; elsewhere the shell offers
files. Must not know any verb: it reads the declared commands, as the help does.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from amphitrite.cli.session.session import Session
from amphitrite.cli.session.verb_declaration import group, verb
from amphitrite.cli.terminal.arguments import OptionTable
from amphitrite.cli.terminal.options import FORMATS
from amphitrite.schemas.errors import Error

app = group("completion", "Print a completion script for a shell.")

#: Each script runs ``ml completion candidates -- WORDS``, which prints lines of candidate, tab and
#: meaning.
_SCRIPTS = {
    "bash": """\
_ml_candidates() {
  local IFS=$'\\n'
  COMPREPLY=( $(ml completion candidates -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f 1) )
}
complete -o default -F _ml_candidates ml
""",
    "zsh": """\
#compdef ml
_ml() {
  local -a found
  local name meaning
  while IFS=$'\\t' read -r name meaning; do
    found+=("${name//:/\\\\:}:$meaning")
  done < <(ml completion candidates -- "${(@)words[2,$CURRENT]}" 2>/dev/null)
  if (( ${#found} )); then _describe ml found; else _files; fi
}
compdef _ml ml
""",
    "fish": """\
complete --command ml --keep-order --arguments \
'(ml completion candidates -- (commandline -opc)[2..-1] (commandline -ct | string collect --allow-empty))'
""",
}


@verb(app, "completion")
def completion(
    session: Session,
    shell: Annotated[str, typer.Argument(metavar="bash|zsh|fish", help="Name of the shell.", show_default=False)],
    words: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
) -> None:
    """Print a completion script. For bash, add to ~/.bashrc: eval "$(ml completion bash)"."""
    if shell == "candidates":
        from amphitrite.cli.session.program import program

        lines = (f"{name}\t{meaning}\n" for name, meaning in candidates(program(), words or [""]))
        sys.stdout.write("".join(lines))
    elif shell in _SCRIPTS:
        sys.stdout.write(_SCRIPTS[shell])
    else:
        raise Error("UsageError", f"found `{shell}`; allowed: {', '.join(_SCRIPTS)}")


def candidates(command: Any, words: Sequence[str]) -> list[tuple[str, str]]:
    """(candidate, meaning) for the last of ``words``, which may be empty.

    ``command``: the whole program.
    """
    *before, current = words
    option_with_value: str | None = None  # the option whose value is at the cursor
    for word in before:
        options = OptionTable.of(command.params)
        if option_with_value is not None:
            option_with_value = None
        elif word.startswith("-"):
            option_with_value = word if word in options.takes_value else None
        elif (command := _below(command, word)) is None:
            return []
    if option_with_value is not None:
        is_format = option_with_value in ("-o", "--output")
        return [(form, "") for form in FORMATS if is_format and form.startswith(current)]
    if current.startswith("-"):
        names = [(spelling, option.help or "") for option in command.params for spelling in _long(option)]
    else:
        names = _verbs(command)
    return sorted((name, meaning) for name, meaning in names if name.startswith(current))


def _below(command: Any, word: str) -> Any:
    return command.get_command(None, word) if hasattr(command, "get_command") else command


def _long(option: Any) -> list[str]:
    return [spelling for spelling in option.opts if spelling.startswith("--") and not getattr(option, "hidden", False)]


def _verbs(command: Any) -> list[tuple[str, str]]:
    """(name, summary) of the subcommands; does not import them."""
    if not hasattr(command, "list_commands"):
        return []
    summaries: list[tuple[str, str]] = command.summaries()
    return summaries
