"""Combines options and a file into the document that a verb sends.

Decides the precedence (``--set``, then options, then the file), the JSON Schema of a document, and
the base of its relative paths. Must not know YAML (``document_files``) or the server.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Any

from amphitrite.cli.documents import document_files, document_kinds, edits
from amphitrite.cli.documents.document_files import Document
from amphitrite.cli.documents.edits import Edit
from amphitrite.schemas.documents import deployment_kind, endpoint_kind, inline_deployments
from amphitrite.schemas.errors import Error, Violation

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Submission:
    """A validated, normalized document that a verb sends.

    ``source``: the document as it was read, with the locations of its parts. ``within``: the path
    in ``source`` at which this document is.
    """

    document: dict[str, Any]
    source: Document
    within: Path = ()

    @contextmanager
    def with_locations(self) -> Iterator[None]:
        """Adds the locations of violations to errors that are raised inside."""
        try:
            yield
        except Error as error:
            raise self._with_violation_locations(error) from error

    @contextmanager
    def naming(self, field: str) -> Iterator[None]:
        """Says of a ResourceNotFound that is raised inside where ``field`` names what is not
        there."""
        try:
            yield
        except Error as error:
            if error.code != "ResourceNotFound" or error.violations:
                raise
            named = [Violation((field,), error.message, error.hint)]
            located = Error(error.code, error.message, target=error.target, hint=error.hint, violations=named)
            raise self._with_violation_locations(located) from error

    def _with_violation_locations(self, error: Error) -> Error:
        if not error.violations or any(violation.location for violation in error.violations):
            return error
        violations = [
            replace(
                violation, location=self.source.location((*self.within, *violation.path), about_key=violation.about_key)
            )
            for violation in error.violations
        ]
        return Error(error.code, error.message, target=error.target, hint=error.hint, violations=violations)


def read_source(file: str | None, options: Mapping[str, Any]) -> Document:
    """The document in the file, or an empty one, with ``options`` (field -> value) set.

    Raises Error.
    """
    document = document_files.load_document(file) if file is not None else document_files.empty_document()
    return with_options(document, options)


def endpoint_name(document: Document | None) -> str:
    """The name of the endpoint in a document. Raises Error UsageError if there is none."""
    name = document.value.get("name") if document is not None and isinstance(document.value, Mapping) else None
    if not isinstance(name, str):
        raise Error("UsageError", "the name of the endpoint is missing", hint="add --name, or --file with a name")
    return name


def with_options(document: Document, options: Mapping[str, Any]) -> Document:
    """``document`` with ``options`` (field -> value) set; their locations are the options."""
    for field, value in options.items():
        document = document_files.with_value(document, (field,), value, f"--{field.replace('_', '-')}")
    return document


def read_endpoint(
    file: str | None, options: Mapping[str, Any], field_edits: Sequence[Edit]
) -> tuple[Submission, list[Submission]]:
    """An endpoint, and the deployments inside its document.

    Raises one Error with all violations.
    """
    return validate_endpoint_with_deployments(edits.apply(read_source(file, options), field_edits))


def validate_endpoint_with_deployments(document: Document) -> tuple[Submission, list[Submission]]:
    """An endpoint, and the deployments inside its document.

    Raises Error InvalidDocument, LocalFileError.
    """
    document_kinds.require(document, "endpoint")
    if not inline_deployments.is_legacy(document.value):
        return validate_endpoint(document), []
    head, inline = inline_deployments.split(document_files.validate_and_normalize(document, "legacy_endpoint"))
    parts = [
        Submission(_with_local_paths(part, document, ("deployments", index)), document, ("deployments", index))
        for index, part in enumerate(inline)
    ]
    return Submission(head, document), parts


def validate_endpoint(document: Document) -> Submission:
    """An endpoint. Raises Error InvalidDocument."""
    document_kinds.require(document, "endpoint")
    return Submission(document_files.validate_and_normalize(document, endpoint_kind(document.value)), document)


def read_deployment(file: str, options: Mapping[str, Any], field_edits: Sequence[Edit]) -> Submission:
    """A deployment. Raises one Error with all violations."""
    return validate_deployment(edits.apply(read_source(file, options), field_edits))


def validate_deployment(document: Document) -> Submission:
    """A deployment. Raises Error InvalidDocument, LocalFileError."""
    document_kinds.require(document, "deployment")
    checked = document_files.validate_and_normalize(document, deployment_kind(document.value))
    return Submission(_with_local_paths(checked, document), document)


def read_model(file: str | None, options: Mapping[str, Any], field_edits: Sequence[Edit]) -> Submission:
    """A model with its ``path``. Raises one Error with all violations."""
    return validate_model(edits.apply(read_source(file, options), field_edits))


def validate_model(document: Document) -> Submission:
    """A model. Raises Error InvalidDocument, LocalFileError."""
    document_kinds.require(document, "model")
    checked = document_files.validate_and_normalize(document, "model")
    return Submission({**checked, "path": _local(checked["path"], document, ("path",))}, document)


def validate_environment(document: Document) -> Submission:
    """An environment. Raises Error InvalidDocument, LocalFileError."""
    document_kinds.require(document, "environment")
    checked = document_files.validate_and_normalize(document, "environment")
    if isinstance(checked.get("conda_file"), str):
        checked = {**checked, "conda_file": _local(checked["conda_file"], document, ("conda_file",))}
    return Submission(checked, document)


def parse_pairs(option: str, arguments: Sequence[str] | None, example: str = "yes") -> dict[str, str] | None:
    """``["a=1", "b=2 c=3"]`` -> a mapping; None for None. ``example``: a value, for the hint.

    Raises Error UsageError.
    """
    if arguments is None:
        return None
    pairs = {}
    for pair in " ".join(arguments).split():
        name, equals, value = pair.partition("=")
        if not equals or not name:
            first, _, rest = pair.partition(":")
            hint = f"did you mean {first}={rest}?" if first and rest else f"for example {name or 'blue'}={example}"
            raise Error("UsageError", f"{option}: found `{pair}`; allowed: NAME=VALUE", hint=hint)
        pairs[name] = value
    return pairs


def parse_shares(option: str, arguments: Sequence[str] | None) -> dict[str, int] | None:
    """``["blue=90 green=10"]`` -> ``{"blue": 90, "green": 10}``; None for None.

    Raises Error UsageError.
    """
    pairs = parse_pairs(option, arguments, example="100")
    if pairs is None:
        return None
    for name, value in pairs.items():
        if not value.isdecimal():
            together = re.fullmatch(r"\w[\w-]*=\d+(?:[,;]\w[\w-]*=\d+)+", f"{name}={value}")
            raise Error(
                "UsageError",
                f"{option}: found {name}={value}; allowed: a whole number of percent",
                hint='put a space between them: "' + re.sub("[,;]", " ", together[0]) + '"' if together else None,
            )
    return {name: int(value) for name, value in pairs.items()}


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
    resolved_path = FilePath(path) if at in document.origins else document.directory / path
    if not resolved_path.exists():
        message = f"No such file or directory: {resolved_path}"
        violation = Violation(at, message, _base(path, document, at), document.location(at))
        raise Error("LocalFileError", message, target=str(resolved_path), violations=[violation])
    return str(resolved_path)


def _base(path: str, document: Document, at: Path) -> str | None:
    """Where a relative path that was not found starts, as a hint."""
    if FilePath(path).is_absolute():
        return None
    if at in document.origins or document.name == "<stdin>":
        return f"the path starts in the working directory, {FilePath.cwd()}"
    return f"a path in a file starts in the file's directory, {document.directory.resolve()}"
