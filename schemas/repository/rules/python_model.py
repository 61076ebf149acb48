"""Rules for ``model.py`` of Triton's Python backend.

Decides the problems that the text shows: whether it is Python, and has the class and methods that
the backend calls. Must not import or run it. Outside contract: the README of Triton's
``python_backend``.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace

from amphitrite.schemas.repository.models.rule_report import Report

CLASS = "TritonPythonModel"


@dataclass(frozen=True, slots=True)
class PythonModel:
    """A Python model.

    ``completes``: whether it may complete the configuration (``auto_complete_config``).
    ``executes``: whether it has ``execute``; None if unknown. ``imports``: (module, line, column)
    of unconditional imports.
    """

    completes: bool
    executes: bool | None
    imports: tuple[tuple[str, int, int], ...] = ()


def check(report: Report, path: str, text: str) -> PythonModel:
    """Report problems of ``text``, the content of ``path``; return its properties."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Warnings about the user's code.
            tree = ast.parse(text.encode("utf-8", errors="surrogateescape"))
    except SyntaxError as exc:
        report.file(path, "python-syntax", f"invalid Python: {exc.msg}", line=exc.lineno, column=exc.offset,
                    fix="correct the syntax in this line")  # fmt: skip
        return PythonModel(True, None)
    except (ValueError, RecursionError, MemoryError) as exc:  # NUL bytes, or deep nesting
        report.file(path, "python-syntax", f"invalid Python: {exc}")
        return PythonModel(True, None)
    return replace(_check_tree(report, path, tree), imports=tuple(_imports(tree)))


def _check_tree(report: Report, path: str, tree: ast.Module) -> PythonModel:
    if _is_dynamic(tree):
        return PythonModel(True, None)
    matches = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == CLASS]
    if not matches:
        if CLASS in _bound_names(tree):
            return PythonModel(True, None)
        classes = [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
        report.file(
            path, "python-class", f"`{path}` has no class {CLASS}", line=1, column=1,
            found=", ".join(classes) or "no class", fix=f"rename the class to {CLASS}",
        )  # fmt: skip
        return PythonModel(False, None)
    return _members(report, path, matches[-1])


def _members(report: Report, path: str, model: ast.ClassDef) -> PythonModel:
    if model.bases or model.decorator_list or model.keywords:
        return PythonModel(True, None)
    names = _bound_names(ast.Module(model.body, []))
    if "execute" not in names:
        report.file(
            path, "python-execute", f"{CLASS} has no method `execute`; Triton loads the model, but every request fails",
            severity="warning", line=model.lineno, column=model.col_offset + 1,
            fix="add def execute(self, requests)",
        )  # fmt: skip
    _check_initialiser(report, path, model)
    return PythonModel("auto_complete_config" in names, "execute" in names)


def _check_initialiser(report: Report, path: str, model: ast.ClassDef) -> None:
    """Report an ``__init__`` with required arguments: Triton passes none."""
    for node in model.body:
        if isinstance(node, ast.FunctionDef) and node.name == "__init__" and not node.decorator_list:
            required = len(node.args.posonlyargs) + len(node.args.args) - len(node.args.defaults)
            required_keywords = [
                a.arg for a, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True) if default is None
            ]
            if required > 1 or required_keywords:
                missing = [a.arg for a in (*node.args.posonlyargs, *node.args.args)][1:required] + required_keywords
                report.file(
                    path,
                    "python-class",
                    f"Triton creates {CLASS} without arguments",
                    line=node.lineno,
                    column=node.col_offset + 1,
                    found=f"__init__ needs {', '.join(missing)}",
                    fix="move the work to def initialize(self, args)",
                )


def _imports(tree: ast.Module) -> Iterator[tuple[str, int, int]]:
    """The top-level modules that the text imports unconditionally, with line and column."""
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from ((alias.name.partition(".")[0], node.lineno, node.col_offset + 1) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0], node.lineno, node.col_offset + 1


def _is_dynamic(tree: ast.Module) -> bool:
    """Whether names may be defined dynamically, for example by ``exec`` or ``from x import *``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
            return True
        if isinstance(node, ast.Name) and node.id in ("exec", "globals", "setattr", "locals", "vars"):
            return True
    return False


def _bound_names(tree: ast.Module) -> set[str]:
    """Every name that is bound anywhere in ``tree``.

    A name that is not among them is certainly missing.
    """
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
    return names
