"""``ml completion``: completion scripts for shells, and the candidates that they offer.

Decides the candidates at the cursor: verbs, options, and the values of options
(``completion_values``); elsewhere the shell offers files. Must not know any verb: it reads the
declared commands, as the help does.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer

from amphitrite.cli.session.session import Session
from amphitrite.cli.session.verb_declaration import group, verb
from amphitrite.schemas.errors import Error

app = group("completion", "Print a completion script for a shell.")

#: (candidate, its meaning).
Candidate = tuple[str, str]
#: The values of an option: (group and verb, parameter, parameter -> its value in the line, what is
#: typed of the value).
Values = Callable[[list[str], str, Mapping[str, str], str], Sequence[Candidate]]

#: Each script runs ``ml completion candidates -- WORDS``, which prints lines of candidate, tab and
#: meaning. Bash breaks words at ``=`` and ``:`` and replaces the last part only, so its line is
#: sent as it is (``line``). After a candidate that ends with ``=`` or ``:`` no space follows.
_SCRIPTS = {
    "bash": """\
_ml_candidates() {
  local IFS=$'\\n'
  COMPREPLY=( $(ml completion line -- "${COMP_LINE:0:COMP_POINT}" 2>/dev/null | cut -f 1) )
  if [[ ${COMPREPLY-} == *[=:] ]]; then compopt -o nospace 2>/dev/null; fi
  true
}
complete -o default -F _ml_candidates ml
""",
    "zsh": """\
#compdef ml
_ml() {
  local -a found open
  local name meaning
  while IFS=$'\\t' read -r name meaning; do
    if [[ $name == *[=:] ]]; then open+=("${name//:/\\\\:}:$meaning"); else found+=("${name//:/\\\\:}:$meaning"); fi
  done < <(ml completion candidates -- "${(@)words[2,$CURRENT]}" 2>/dev/null)
  if (( ${#found} + ${#open} == 0 )); then _files; fi
  if (( ${#found} )); then _describe ml found; fi
  if (( ${#open} )); then _describe ml open -S ''; fi
}
compdef _ml ml
""",
    "fish": """\
function __ml_candidates
  set -l current (commandline -ct)
  set -l typed (commandline -opc)[2..-1] "$current"
  set -l found (ml completion candidates -- $typed 2>/dev/null)
  if test (count $found) -gt 0
    printf '%s\\n' $found
  else
    __fish_complete_path (commandline -ct)
  end
end
complete --command ml --keep-order --no-files --arguments '(__ml_candidates)'
""",
}


@verb(app, "completion")
def completion(
    session: Session,
    shell: Annotated[str, typer.Argument(metavar="bash|zsh|fish", help="Name of the shell.", show_default=False)],
    words: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
) -> None:
    """Print a completion script.

    For bash, add to ~/.bashrc: eval "$(ml completion bash)". For zsh, add to ~/.zshrc, after
    compinit: source <(ml completion zsh). For fish, add to config.fish: ml completion fish |
    source.
    """
    if shell in ("candidates", "line"):
        from amphitrite.cli.session.program import program

        typed = _split(words[0] if words else "") if shell == "line" else words or [""]
        found = candidates(program(), typed, _from_server(session))
        # Bash replaces what follows the last of its word breaks.
        done = max(typed[-1].rfind("="), typed[-1].rfind(":")) + 1 if shell == "line" else 0
        sys.stdout.write("".join(f"{name[done:]}\t{meaning}\n" for name, meaning in found))
    elif shell in _SCRIPTS:
        sys.stdout.write(_SCRIPTS[shell])
    else:
        raise Error("UsageError", f"found `{shell}`; allowed: {', '.join(_SCRIPTS)}")


@dataclass(slots=True)
class _Line:
    """What the words before the cursor say. ``option``: the one whose value is at the cursor."""

    command: Any
    path: list[str] = field(default_factory=list)
    chosen: dict[str, str] = field(default_factory=dict)
    option: Any = None
    #: The option that may go on with another value: ``--traffic blue=50 green=50``.
    repeatable: Any = None


def candidates(command: Any, words: Sequence[str], values: Values = lambda *_: ()) -> list[Candidate]:
    """(candidate, meaning) for the last of ``words``, which may be empty.

    ``command``: the whole program.
    """
    *before, current = words
    line = _Line(command)
    for word in before:
        if not _read(line, word):
            return []
    prefix = ""
    option = line.option
    if option is None and current.startswith("--") and "=" in current:
        spelled, _, current = current.partition("=")
        option, prefix = _option(line.command, spelled), f"{spelled}="
        if option is None:
            return []
    if option is None and not current.startswith("-"):
        option = line.repeatable or _argument(line.command)
    if option is not None:
        found = values(line.path, option.name, line.chosen, current)
        return [(f"{prefix}{name}", meaning) for name, meaning in found if name.startswith(current)]
    if current.startswith("-"):
        names = [(spelling, one.help or "") for one in line.command.params for spelling in _long(one)]
    else:
        names = _verbs(line.command)
    return sorted((name, meaning) for name, meaning in names if name.startswith(current))


def _read(line: _Line, word: str) -> bool:
    """Takes one word into account. False: it leads nowhere."""
    if line.option is not None:
        line.chosen[line.option.name], line.option = word, None
    elif word.startswith("-"):
        spelled, equals, value = word.partition("=")
        option = _option(line.command, spelled)
        takes_value = option is not None and not getattr(option, "is_flag", False)
        line.repeatable = option if takes_value and getattr(option, "multiple", False) else None
        if takes_value and equals:
            line.chosen[option.name] = value
        elif takes_value:
            line.option = option
    elif line.repeatable is None and hasattr(line.command, "get_command"):
        line.command = line.command.get_command(None, word)
        line.path.append(word)
    return line.command is not None


def _argument(command: Any) -> Any:
    """The argument of a verb; None if it has none, and for a group."""
    if hasattr(command, "get_command"):
        return None
    arguments = (one for one in command.params if one.param_type_name == "argument")
    return next((one for one in arguments if not getattr(one, "hidden", False)), None)


def _option(command: Any, spelled: str) -> Any:
    """The option that is spelled so, or abbreviated without ambiguity; None if there is none."""
    found = {
        one.name: one
        for one in command.params
        for spelling in (*one.opts, *one.secondary_opts)
        if spelling == spelled or (spelled.startswith("--") and len(spelled) > 2 and spelling.startswith(spelled))
    }
    exact = [one for one in found.values() if spelled in (*one.opts, *one.secondary_opts)]
    return exact[0] if exact else next(iter(found.values())) if len(found) == 1 else None


def _from_server(session: Session) -> Values:
    """Values from the control plane that the line names. Silent whatever goes wrong: a shell waits
    for it, and shows no messages."""

    def look(path: list[str], parameter: str, chosen: Mapping[str, str], current: str) -> Sequence[Candidate]:
        from dataclasses import replace

        from amphitrite.cli.session.completion_values import values
        from amphitrite.cli.session.quick_names import QuickNames

        own = session.options
        options = replace(
            own,
            server_url=chosen.get("server_url", own.server_url),
            subscription=chosen.get("subscription", own.subscription),
            resource_group=chosen.get("resource_group", own.resource_group),
            workspace=chosen.get("workspace", own.workspace),
        )
        try:
            return values(path, parameter, chosen, current, QuickNames(options))
        except Exception:
            return ()

    return look


def _split(line: str) -> list[str]:
    """The words of a line after the command, the last one as far as it is typed."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.commenters = True, ""
    words: list[str] = []
    try:
        words += lexer
    except ValueError:  # An open quotation mark: its content is the last word.
        words.append(lexer.token)
    if line[-1:].isspace() or not words:
        words.append("")
    return words[1:] or [""]


def _long(option: Any) -> list[str]:
    return [spelling for spelling in option.opts if spelling.startswith("--") and not getattr(option, "hidden", False)]


def _verbs(command: Any) -> list[tuple[str, str]]:
    """(name, summary) of the subcommands; does not import them."""
    if not hasattr(command, "list_commands"):
        return []
    summaries: list[tuple[str, str]] = command.summaries()
    return summaries
