"""Commands of ``az`` outside ``az ml`` that Azure's scripts contain and that have no counterpart.

Decides what each says in one line, and whether a script may go on. It may where what follows needs
nothing of it, or is checked by itself: a deployment whose image nobody has built is refused or says
that it cannot be pulled. Must not do what the commands do in Azure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from amphitrite.cli.session.session import Session
from amphitrite.schemas.errors import Error

#: All words after the command, also unknown options.
Words = Annotated[list[str] | None, typer.Argument(hidden=True)]

_FROM = re.compile(r"^\s*FROM\s+(?:--\S+\s+)*(\S+)", re.IGNORECASE | re.MULTILINE)
_TRITON = "tritonserver"
_PUSH = "build it with `docker build`, push it to a registry that your cluster reads, and name it in environment.image"


def acr(session: Session, words: Words = None) -> None:
    """Explain what stands for Azure's container registry."""
    given = list(words or ())
    if given[:1] == ["login"]:
        session.note("note: acr login: no login is needed; the nodes of a cluster pull with credentials of their own")
    elif given[:1] == ["build"]:
        _build(session, given[1:])
    else:
        raise _unsupported("acr", given, "there is no container registry here", _PUSH)


def storage(session: Session, words: Words = None) -> None:
    """Explain what stands for Azure's storage accounts."""
    hint = "upload the files of a model with `ml model create -n NAME -p PATH -t triton_model`"
    raise _unsupported(
        "storage", list(words or ()), "there is no storage account; a model is uploaded as it is made", hint
    )


def extension(session: Session, words: Words = None) -> None:
    """Explain that there are no extensions."""
    session.note(f"note: {_command('extension', list(words or ()))}: ml has no extensions; nothing is to be installed")


def login(session: Session, words: Words = None) -> None:
    """Explain how a command signs in."""
    session.note("note: login: ml sends the server's token: ML_TOKEN, else that of ML_HOME")


def _build(session: Session, given: Sequence[str]) -> None:
    """Says what serves in place of the image. Raises Error Unsupported if only a build could."""
    image = _value(given, "-t", "--image") or "the image"
    base = _base(given)
    if base is None or base.partition("@")[0].rpartition("/")[2].partition(":")[0] != _TRITON:
        why = f"no images are built here, and {image} is built from {base or 'an unknown image'}"
        raise Error("Unsupported", f"acr build: {why}", target=image, hint=_PUSH)
    name = image.partition("@")[0].rpartition("/")[2].partition(":")[0]
    session.note(
        f"note: acr build: {image} is not built; on one machine its own Triton serves it if the server was started "
        f"with ML_LOCAL_TRITON_IMAGES={name}, for a cluster build and push it with docker"
    )


def _base(given: Sequence[str]) -> str | None:
    """The image from which the last stage of the Dockerfile is built."""
    context = Path(given[-1]) if given and not given[-1].startswith("-") else Path()
    named = Path(_value(given, "-f", "--file") or "Dockerfile")
    file = next((path for path in (named, context / named) if path.is_file()), None)
    if file is None:
        raise Error("LocalFileError", f"acr build: there is no {named}", target=str(named))
    try:
        bases = _FROM.findall(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as exc:
        raise Error("LocalFileError", f"cannot read {file}: {exc}", target=str(file)) from exc
    return str(bases[-1]) if bases else None


def _value(given: Sequence[str], *names: str) -> str | None:
    """The value of an option."""
    for word, following in zip(given, [*given[1:], ""], strict=True):
        name, equals, value = word.partition("=")
        if name in names:
            return value if equals else following
    return None


def _command(group: str, given: Sequence[str]) -> str:
    """The command without its options, such as ``storage blob upload``."""
    words = []
    for word in given:
        if word.startswith("-"):
            break
        words.append(word)
    return " ".join([group, *words])


def _unsupported(group: str, given: Sequence[str], why: str, hint: str) -> Error:
    command = _command(group, given)
    return Error("Unsupported", f"{command}: {why}", target=command, hint=hint)
