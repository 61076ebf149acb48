"""Combines options and a file into the document that a verb sends.

Decides the precedence (``--set``, then options, then the file), the JSON Schema of a document, and
the base of its relative paths. Must not know YAML (``document_files``) or the server.
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
    """A validated, normalized document.

    ``source``: the document as it was read, with the locations of its parts. ``within``: the path
    in ``source`` at which this document is.
    """

    document: dict[str, Any]
    source: Document
    within: Path = ()

    @contextmanager
    def located(self) -> Iterator[None]:
        """Adds the locations of violations to errors that are raised inside."""
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
    """The document in the file, or an empty one, with ``options`` (field -> value) set.

    Raises Error.
    """
    document = document_files.load_document(file) if file is not None else document_files.empty_document()
    return with_options(document, options)


def name_in(document: Document | None) -> str:
    """The name of the endpoint in a document. Raises Error UsageError if there is none."""
    name = document.value.get("name") if document is not None and isinstance(document.value, Mapping) else None
    if not isinstance(name, str):
        raise Error("UsageError", "the name of the endpoint is missing", hint="add --name, or --file with a name")
    return name


def with_options(document: Document, options: Mapping[str, Any]) -> Document:
    for field, value in options.items():
        document = document_files.with_value(document, (field,), value, f"--{field.replace('_', '-')}")
    return document


def endpoint(file: str | None, options: Mapping[str, Any], wanted: Sequence[Edit]) -> tuple[Draft, list[Draft]]:
    """An endpoint, and the deployments inside its document.

    Raises one Error with all violations.
    """
    return judged_endpoints(edits.apply(source(file, options), wanted))


def judged_endpoints(document: Document) -> tuple[Draft, list[Draft]]:
    """An endpoint, and the deployments inside its document.

    Raises Error InvalidDocument, LocalFileError.
    """
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
    """A deployment. Raises one Error with all violations."""
    return judged_deployment(edits.apply(source(file, options), wanted))


def judged_deployment(document: Document) -> Draft:
    """Raises Error InvalidDocument."""
    checked = document_files.check(document, deployment_kind(document.value))
    return Draft(_with_local_paths(checked, document), document)


def model(file: str | None, options: Mapping[str, Any], wanted: Sequence[Edit]) -> Draft:
    """A model with its ``path``. Raises one Error with all violations."""
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
            raise Error("UsageError", f"{option}: found `{word}`; allowed: NAME=VALUE")
        found[name] = value
    return found


def shares(option: str, words: Sequence[str] | None) -> dict[str, int] | None:
    """``["blue=90 green=10"]`` -> ``{"blue": 90, "green": 10}``; None for None.

    Raises Error UsageError.
    """
    found = pairs(option, words)
    if found is None:
        return None
    for name, value in found.items():
        if not value.isdecimal():
            raise Error("UsageError", f"{option}: found {name}={value}; allowed: a whole number of percent")
    return {name: int(value) for name, value in found.items()}


#: Prefixes of addresses that are not paths on this machine.
_REMOTE = ("azureml:", "http://", "https://", "runs:", "wasbs://", "abfss://")


def is_remote(path: str) -> bool:
    """Whether ``path`` is an address and not a path on this machine."""
    return path.startswith(_REMOTE)


def _with_local_paths(deployment: dict[str, Any], document: Document, within: Path = ()) -> dict[str, Any]:
    inline = deployment.get("model")
    if not isinstance(inline, Mapping) or "path" not in inline:
        return deployment
    path = _local(inline["path"], document, (*within, "model", "path"))
    return {**deployment, "model": {**inline, "path": path}}


def _local(path: str, document: Document, at: Path) -> str:
    """A path relative to its document, or to the working directory if an option set it.

    Raises Error LocalFileError if nothing exists there.
    """
    if is_remote(path):
        return path
    found = FilePath(path) if at in document.origins else document.directory / path
    if not found.exists():
        message = f"No such file or directory: {found}"
        violation = Violation(at, message, location=document.location(at))
        raise Error("LocalFileError", message, target=str(found), violations=[violation])
    return str(found)
