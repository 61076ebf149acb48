"""From options and a file to the document that a verb sends.

Decides precedence (``--set`` over options over the file), which schema judges a document, and what relative paths in it
start from. Must not know YAML (``documents``) or the server.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Any

from amphitrite.cli.documents import document_files, edits
from amphitrite.cli.documents.document_files import Document
from amphitrite.cli.documents.edits import Edit
from amphitrite.schemas.documents import deployment_kind, endpoint_kind, inline_deployments
from amphitrite.schemas.errors import Error, Violation

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Draft:
    """A judged, normalised document. ``source`` knows where its parts were written, ``within`` which part it is."""

    document: dict[str, Any]
    source: Document
    within: Path = ()

    @contextmanager
    def located(self) -> Iterator[None]:
        """Errors raised within get the location of each violation, which the server cannot know."""
        try:
            yield
        except Error as error:
            raise self._located(error) from error

    def _located(self, error: Error) -> Error:
        if not error.violations or any(v.location for v in error.violations):
            return error
        located = [
            replace(v, location=self.source.location((*self.within, *v.path), about_key=v.about_key))
            for v in error.violations
        ]
        return Error(error.code, error.message, target=error.target, hint=error.hint, violations=located)


def source(file: str | None, options: Mapping[str, Any]) -> Document:
    """The file's document, or an empty one, with each option in the field of its name. Raises Error."""
    document = document_files.load_document(file) if file is not None else document_files.empty_document()
    return with_options(document, options)


def name_in(document: Document | None) -> str:
    """The name of the endpoint in a file. Raises Error UsageError."""
    name = document.value.get("name") if document is not None and isinstance(document.value, Mapping) else None
    if not isinstance(name, str):
        raise Error("UsageError", "which endpoint?", hint="give --name, or --file with a name")
    return name


def with_options(document: Document, options: Mapping[str, Any]) -> Document:
    for field, value in options.items():
        document = document_files.with_value(document, (field,), value, f"--{field.replace('_', '-')}")
    return document


def endpoint(file: str | None, options: Mapping[str, Any], wanted: Sequence[Edit]) -> tuple[Draft, list[Draft]]:
    """An endpoint, and the deployments that its document has inline. Raises Error with everything that is wrong."""
    return judged_endpoints(edits.apply(source(file, options), wanted))


def judged_endpoints(document: Document) -> tuple[Draft, list[Draft]]:
    """An endpoint, and the deployments that its document has inline. Raises Error InvalidDocument, LocalFileError."""
    if not inline_deployments.is_legacy(document.value):
        return judged_endpoint(document), []
    head, inline = inline_deployments.split(document_files.check(document, "legacy_endpoint"))
    parts = [
        Draft(_with_local_paths(part, document, ("deployments", index)), document, ("deployments", index))
        for index, part in enumerate(inline)
    ]
    return Draft(head, document), parts


def judged_endpoint(document: Document) -> Draft:
    """Raises Error InvalidDocument."""
    return Draft(document_files.check(document, endpoint_kind(document.value)), document)


def deployment(file: str, options: Mapping[str, Any], wanted: Sequence[Edit]) -> Draft:
    """A deployment. Raises Error with everything that is wrong."""
    return judged_deployment(edits.apply(source(file, options), wanted))


def judged_deployment(document: Document) -> Draft:
    """Raises Error InvalidDocument."""
    checked = document_files.check(document, deployment_kind(document.value))
    return Draft(_with_local_paths(checked, document), document)


def model(file: str | None, options: Mapping[str, Any], wanted: Sequence[Edit]) -> Draft:
    """A model with its ``path``. Raises Error with everything that is wrong."""
    return judged_model(edits.apply(source(file, options), wanted))


def judged_model(document: Document) -> Draft:
    """Raises Error InvalidDocument, LocalFileError."""
    checked = document_files.check(document, "model")
    return Draft({**checked, "path": _local(checked["path"], document, ("path",))}, document)


def judged_environment(document: Document) -> Draft:
    """Raises Error InvalidDocument, LocalFileError."""
    checked = document_files.check(document, "environment")
    if isinstance(checked.get("conda_file"), str):
        checked = {**checked, "conda_file": _local(checked["conda_file"], document, ("conda_file",))}
    return Draft(checked, document)


def pairs(option: str, words: Sequence[str] | None) -> dict[str, str] | None:
    """``["a=1", "b=2 c=3"]`` -> a mapping; None for None. Raises Error UsageError."""
    if words is None:
        return None
    found = {}
    for word in " ".join(words).split():
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise Error("UsageError", f"{option}: `{word}` is not of the form name=value")
        found[name] = value
    return found


def shares(option: str, words: Sequence[str] | None) -> dict[str, int] | None:
    """``["blue=90 green=10"]`` -> ``{"blue": 90, "green": 10}``; None for None. Raises Error UsageError."""
    found = pairs(option, words)
    if found is None:
        return None
    for name, value in found.items():
        if not value.isdecimal():
            raise Error("UsageError", f"{option}: {name}={value}: a share is a whole number of percent")
    return {name: int(value) for name, value in found.items()}


#: What is at one of these addresses is not on this machine.
_REMOTE = ("azureml:", "http://", "https://", "runs:", "wasbs://", "abfss://")


def is_remote(path: str) -> bool:
    """Whether ``path`` is an address rather than a place on this machine."""
    return path.startswith(_REMOTE)


def _with_local_paths(deployment: dict[str, Any], document: Document, within: Path = ()) -> dict[str, Any]:
    inline = deployment.get("model")
    if not isinstance(inline, Mapping) or "path" not in inline:
        return deployment
    path = _local(inline["path"], document, (*within, "model", "path"))
    return {**deployment, "model": {**inline, "path": path}}


def _local(path: str, document: Document, at: Path) -> str:
    """Paths start from the directory of the file that has them, or where ``ml`` runs. Raises Error LocalFileError."""
    if is_remote(path):
        return path
    found = FilePath(path) if at in document.origins else document.directory / path
    if not found.exists():
        message = f"No such file or directory: {found}"
        violation = Violation(at, message, location=document.location(at))
        raise Error("LocalFileError", message, target=str(found), violations=[violation])
    return str(found)
