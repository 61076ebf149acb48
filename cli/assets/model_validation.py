"""Checks before an upload whether Triton would load the files of a model.

Decides which files are checked (those that an upload would send), for which server, and how
findings become lines or an Error. Must not know the rules (``schemas.repository``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amphitrite.cli.assets import model_files
from amphitrite.schemas.errors import Error, Violation
from amphitrite.schemas.names import key

if TYPE_CHECKING:
    from amphitrite.cli.session.session import Session
    from amphitrite.schemas.repository import Finding, Server

TYPE = "triton_model"
_UNREAD_HINT = "make the file readable for the account that runs `ml`"


@dataclass(frozen=True, slots=True)
class LocalChecks:
    """The findings about a local model repository.

    ``root``: its directory. ``single``: the name of the only model, if the user named that model's
    directory; the directory above it is then the repository.
    """

    root: Path
    findings: list[Finding]
    single: str | None = None


def findings(path: Path, server: Server) -> LocalChecks:
    """The errors and warnings of the repository at ``path``, or of the single model there. Raises
    Error LocalFileError."""
    from amphitrite.schemas.repository import validate
    from amphitrite.schemas.repository.files.local_directory import LocalRepository
    from amphitrite.schemas.repository.models.layout import is_single_model

    model = model_files.read(path)
    if not is_single_model([file.relative for file in model.files]):
        files = {file.relative: (file.path, file.size) for file in model.files}
        return LocalChecks(path, validate(LocalRepository(files), server=server))
    files = {f"{model.name}/{file.relative}": (file.path, file.size) for file in model.files}
    root = path.parent if path.name == model.name else path.resolve().parent
    return LocalChecks(root, validate(LocalRepository(files), server=server), model.name)


def check(document: Mapping[str, Any]) -> None:
    """Raises Error UserError if no Triton would load the triton_model of ``document``, and
    LocalFileError if a file cannot be read.

    The control plane checks what depends on the server when the version is registered.
    """
    if document.get("type") != TYPE:
        return
    from amphitrite.schemas.repository import ANY_SERVER, errors

    path = Path(str(document["path"]))
    if not path.is_dir():
        return  # A single file is not a repository: the server refuses it and explains the layout.
    checks = findings(path, ANY_SERVER)
    problems = errors(checks.findings)
    unread = [finding for finding in problems if _is_unread(finding)]
    if unread:
        raise Error(
            "LocalFileError",
            f"cannot read {path}: {'; '.join(str(finding) for finding in unread[:3])}",
            target="path",
            hint=_UNREAD_HINT,
            violations=[violation(finding, checks.root) for finding in unread],
        )
    if problems:
        raise Error(
            "UserError",
            f"Triton would not load {path}: {'; '.join(str(finding) for finding in problems[:3])}",
            target="path",
            violations=[violation(finding, checks.root) for finding in problems],
        )


def _is_unread(finding: Finding) -> bool:
    """Whether it is about this machine's file, so that nothing is known of Triton's opinion."""
    return finding.code == "unreadable"


def violation(finding: Finding, root: Path) -> Violation:
    """The finding as a violation at ``<root>/model_1/config.pbtxt:3:14``.

    A finding about the layout as a whole is a violation of the document's field ``path``.
    """
    if not finding.file:
        return Violation(("path",), finding.sentence, finding.hint)
    location = f"{root / finding.file}{finding.location.removeprefix(finding.file)}"
    return Violation((finding.path,) if finding.path else (), finding.sentence, finding.hint, location)


def server_for(session: Session, instance_type: str | None) -> Server:
    """This machine's server, with its ONNX Runtime if it has one, and the GPUs of an instance type.

    The control plane knows the instance types. Raises Error BadArgument for an unknown type, and
    the errors of the control plane.
    """
    from amphitrite.schemas import wire
    from amphitrite.schemas.names import compute_id
    from amphitrite.schemas.repository import Server
    from amphitrite.schemas.repository.files import onnx_releases

    if instance_type is None:
        return Server(onnxruntime=onnx_releases.installed())
    client = session.client
    computes = client.list_all(f"{client.workspace}/computes")
    name = next(one["name"] for one in computes if not one["properties"]["isAttachedCompute"])
    sizes = [wire.show_size(size) for size in client.get(f"{compute_id(client.workspace, name)}/vmSizes")["value"]]
    known = {key(str(size["name"])): size for size in sizes}
    if key(instance_type) not in known:
        from amphitrite.schemas.repository.files.findings import closest

        guess = closest(key(instance_type), known)
        hint = (
            f'did you mean "{known[guess]["name"]}"?'
            if guess
            else "run `ml compute list-sizes` to see all instance types"
        )
        raise Error("BadArgument", f"unknown instance type `{instance_type}`", target="instance_type", hint=hint)
    gpus = int(known[key(instance_type)].get("gpus") or 0)
    return Server(onnxruntime=onnx_releases.installed(), gpus=gpus)


def report(session: Session, path: str, instance_type: str | None) -> bool:
    """Print the findings of the repository at ``path``; return whether Triton would load it.

    They are printed as text to stderr, and also as data if an output format or a query is set.
    Raises Error LocalFileError, and as :func:`server_for`.
    """
    from amphitrite.schemas.repository import errors
    from amphitrite.schemas.repository.models.layout import single_model_note

    root = Path(path)
    if root.exists() and not root.is_dir():
        message = f"{root} is a file; allowed: the directory of a model repository"
        file = "model.py" if root.suffix == ".py" else "model.onnx"
        layout = f"use the layout models/<model name>/1/{file}, and name the directory models"
        raise Error("LocalFileError", message, target=path, hint=layout)
    checks = findings(root, server_for(session, instance_type))
    all_findings, problems = checks.findings, errors(checks.findings)
    if checks.single is not None:
        session.note(f"note: {single_model_note(checks.single)}")
    for finding in all_findings:
        # The code with which `create` refuses the repository.
        refused = "LocalFileError" if _is_unread(finding) else "UserError"
        code = f" [{refused}]" if finding.severity == "error" else ""
        session.note(f"{finding.severity}: {violation(finding, checks.root)}{code}")
        hint = _UNREAD_HINT if _is_unread(finding) else finding.hint
        if hint:
            session.note(f"hint: {hint}")
    unread = sum(map(_is_unread, problems))
    if unread:
        session.note(f"{path}: not checked completely ({_count(unread, 'unreadable file')})")
    elif problems:
        session.note(f"{path}: Triton would not load this repository ({_count(len(problems), 'error')})")
    else:
        session.note(f"{path}: Triton would load this repository")
    if session.options.output is not None or session.options.query is not None:
        session.print(
            [finding.to_document() for finding in all_findings], ("severity", "file", "line", "column", "message")
        )
    return not problems


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
