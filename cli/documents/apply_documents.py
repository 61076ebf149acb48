"""The documents of ``ml apply``: files and directories as validated resources in order.

Decides which kinds can be applied, and the order in which resources can be created. Must not know
the server.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from amphitrite.cli.documents import document_files, document_input, document_kinds
from amphitrite.cli.documents.document_files import Document
from amphitrite.cli.documents.document_input import Submission
from amphitrite.schemas.errors import Error, Violation
from amphitrite.schemas.names import key

Kind = Literal["model", "environment", "endpoint", "deployment"]

#: A resource comes after the kinds that it can refer to.
ORDER: tuple[Kind, ...] = ("model", "environment", "endpoint", "deployment")
_SUFFIXES = (".yml", ".yaml")


@dataclass(frozen=True, slots=True)
class RequestedResource:
    """One requested resource."""

    kind: Kind
    submission: Submission

    @property
    def name(self) -> str:
        """The name as it is printed: ``cats``, ``cats/blue``, ``resnet:3``."""
        document = self.submission.document
        if self.kind == "deployment":
            return f"{document['endpoint_name']}/{document['name']}"
        version = document.get("version")
        return f"{document['name']}:{version}" if version is not None else str(document["name"])


def read_resources(paths: Sequence[str]) -> list[RequestedResource]:
    """All resources of all documents of ``paths``, in the order in which they can be created.

    A path is a file, a directory with ``.yml`` and ``.yaml`` files, or ``-``. Raises one Error
    InvalidDocument with the violations of all documents, and LocalFileError.
    """
    items: list[RequestedResource] = []
    violations: list[Violation] = []
    for document in _documents(paths, violations):
        try:
            items += _items(document)
        except Error as error:
            if not error.violations:
                raise
            violations += error.violations
    violations += _duplicates(items)
    if violations:
        count = f"{len(violations)} problem{'s' if len(violations) != 1 else ''}"
        raise Error("InvalidDocument", f"{', '.join(paths)}: {count}; nothing was changed", violations=violations)
    return sorted(items, key=lambda item: ORDER.index(item.kind))


def _documents(paths: Sequence[str], violations: list[Violation]) -> Iterator[Document]:
    """Reads one file after the other.

    The violations of a file that is not YAML are added to ``violations``.
    """
    for path in paths:
        for file in _files(path):
            try:
                yield from document_files.load_documents(file)
            except Error as error:
                if not error.violations:
                    raise
                violations += error.violations


def _files(path: str) -> list[str]:
    if path == "-" or not Path(path).is_dir():
        return [path]
    try:
        files = sorted(str(one) for one in Path(path).iterdir() if one.suffix in _SUFFIXES and one.is_file())
    except OSError as exc:
        raise Error("LocalFileError", f"cannot read {path}: {exc.strerror}", target=path) from exc
    if not files:
        raise Error("LocalFileError", f"{path} has no {' or '.join('*' + suffix for suffix in _SUFFIXES)} files")
    return files


def _items(document: Document) -> list[RequestedResource]:
    kind = kind_of(document)
    if kind == "endpoint":
        head, inline = document_input.validate_endpoint_with_deployments(document)
        return [RequestedResource(kind, head), *(RequestedResource("deployment", one) for one in inline)]
    if kind == "environment":
        return [RequestedResource(kind, document_input.validate_environment(document))]
    return [
        RequestedResource(
            kind,
            (document_input.validate_deployment if kind == "deployment" else document_input.validate_model)(document),
        )
    ]


def kind_of(document: Document) -> Kind:
    """The kind of ``document``.

    Raises Error InvalidDocument if it cannot be told, or is one that is not applied.
    """
    kind = document_kinds.find(document)
    if kind == "compute" or kind == "instance types":
        raise document_kinds.wrong_kind(document, kind)
    if kind is not None:
        return kind
    message = "cannot tell the kind of this document"
    hint = "add $schema, for an endpoint https://azuremlschemas.azureedge.net/latest/managedOnlineEndpoint.schema.json"
    violation = Violation((), message, hint, location=document.location(()))
    raise Error("InvalidDocument", message, violations=[violation])


def _duplicates(items: Sequence[RequestedResource]) -> Iterator[Violation]:
    """A violation for each resource that two documents describe."""
    seen: dict[tuple[Kind, str], RequestedResource] = {}
    for item in items:
        first = seen.setdefault((item.kind, key(item.name)), item)
        if first is not item:
            where = first.submission.source.location(first.submission.within)
            message = f"{item.kind} {item.name} is already defined at {where}"
            at = item.submission.source.location(item.submission.within)
            yield Violation((), message, "remove one of the two", location=at)
