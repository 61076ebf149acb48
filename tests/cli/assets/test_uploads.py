"""Model files on their way to the store: which, in what pieces, and not twice."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest

from amphitrite.cli.assets import ignore_files, model_files, uploads
from amphitrite.schemas.errors import Error
from amphitrite.schemas.repository.files.local_directory import LocalRepository

from ..conftest import Stage


def tree(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_DOT_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def names(root: Path) -> list[str]:
    return [file.relative for file in model_files.read(root).files]


def blobs(stage: Stage) -> list[str]:
    return [line for line in stage.machine.requests if line.startswith("PUT /storage")]


def create(stage: Stage, name: str) -> None:
    code, _, err = stage.run("model", "create", "-n", name, "-p", "files", "-o", "none")
    assert code == 0, err


def test_the_same_content_is_sent_once(stage: Stage) -> None:
    tree(stage.directory / "files", a__1__m_DOT_onnx="x", b="yy")
    create(stage, "first")
    assert len(blobs(stage)) == 3  # two files and the mark
    create(stage, "second")
    assert len(blobs(stage)) == 3
    (stage.directory / "files/b").write_text("zz")
    create(stage, "first")
    assert len(blobs(stage)) == 6


def test_an_upload_that_was_cut_is_made_again(stage: Stage) -> None:
    tree(stage.directory / "files", a="x", b="y")
    stage.machine.cut_after = 1
    assert stage.run("model", "create", "-n", "m", "-p", "files")[0] == 3
    create(stage, "m")
    digest = model_files.contents(model_files.read(stage.directory / "files")).digest
    assert digest in stage.run("model", "show", "-n", "m", "-v", "1", "--query", "path")[1]


def test_a_large_file_travels_in_blocks_and_arrives_whole(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "WHOLE_BYTES", 1_000_000)
    monkeypatch.setattr(uploads, "BLOCK_BYTES", 300_000)
    content = os.urandom(1_000_001)
    (stage.directory / "files").mkdir()
    (stage.directory / "files/large.bin").write_bytes(content)
    (stage.directory / "files/whole.bin").write_bytes(content[1:])
    (stage.directory / "files/empty.bin").touch()
    create(stage, "m")
    # The empty file, the mark, four blocks and their list, the file in one request.
    assert len(blobs(stage)) == 2 + 5 + 1
    listed = stage.machine.services.blobs.list().blobs
    found = {blob.path.rpartition("/")[2]: b"".join(stage.machine.services.blobs.read(blob)) for blob in listed}
    assert found == {"empty.bin": b"", "large.bin": content, "whole.bin": content[1:]}


@pytest.mark.parametrize("whole_bytes", [10, 1000], ids=["blocks", "whole"])
@pytest.mark.parametrize("change", ["other", "shorter"])
def test_a_file_that_changes_after_it_was_read_is_not_taken(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, whole_bytes: int, change: str
) -> None:
    monkeypatch.setattr(uploads, "WHOLE_BYTES", whole_bytes)
    file = tree(stage.directory / "files", a="x" * 100) / "a"
    contents = model_files.contents

    def read(model: model_files.LocalModel, report: Callable[[int, int], None]) -> model_files.Contents:
        found = contents(model, report)
        file.write_text("y" * 100 if change == "other" else "x" * 99)
        return found

    monkeypatch.setattr(model_files, "contents", read)
    code, _, err = stage.run("model", "create", "-n", "m", "-p", "files")
    assert code == 1 and "during the upload" in err
    assert not any(blob.metadata for blob in stage.machine.services.blobs.list().blobs)
    # What has that content's name is sent again, not believed.
    monkeypatch.setattr(model_files, "contents", contents)
    file.write_text("x" * 100)
    create(stage, "m")
    (blob,) = stage.machine.services.blobs.list().blobs
    assert b"".join(stage.machine.services.blobs.read(blob)) == b"x" * 100


def test_a_file_alone(stage: Stage) -> None:
    tree(stage.directory, files="just one")
    create(stage, "m")
    assert stage.run("model", "show", "-n", "m", "-v", "1", "--query", "path", "-o", "tsv")[1].endswith("/files\n")


def test_links_are_followed(tmp_path: Path) -> None:
    tree(tmp_path / "real", x="1")
    tree(tmp_path / "model", a="2")
    (tmp_path / "model/link").symlink_to(tmp_path / "real")
    (tmp_path / "model/file").symlink_to(tmp_path / "real/x")
    assert names(tmp_path / "model") == ["a", "file", "link/x"]


@pytest.mark.parametrize(("target", "text"), [(".", "a link to a directory above it"), ("nowhere", "a broken link")])
def test_links_that_lead_nowhere_are_refused(target: str, text: str, tmp_path: Path) -> None:
    tree(tmp_path / "model", a="1")
    (tmp_path / "model/link").symlink_to(target)
    with pytest.raises(Error, match=text):
        names(tmp_path / "model")


def test_a_directory_without_files(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    with pytest.raises(Error) as caught:
        names(tmp_path)
    assert caught.value.message == (f"Directory {tmp_path} is empty. path or local_path must be a non-empty directory.")


def test_too_many_files_name_the_limit(tmp_path: Path) -> None:
    for number in range(model_files.MAX_FILES + 1):
        (tmp_path / f"{number % 10}").mkdir(exist_ok=True)
        (tmp_path / f"{number % 10}" / str(number)).touch()
    with pytest.raises(Error) as caught:
        names(tmp_path)
    assert "too many files; allowed: 1500" in caught.value.message and caught.value.hint


def test_the_hash_is_of_names_and_contents(tmp_path: Path) -> None:
    def digest(root: Path) -> str:
        return model_files.contents(model_files.read(root)).digest

    first = digest(tree(tmp_path / "1", a="x", b__c="y"))
    assert first == digest(tree(tmp_path / "2", b__c="y", a="x"))
    assert first != digest(tree(tmp_path / "3", a="x", b__d="y"))
    assert first != digest(tree(tmp_path / "4", a="xy", b__c=""))


def test_amlignore_comes_before_gitignore(tmp_path: Path) -> None:
    tree(tmp_path, _DOT_gitignore="a", _DOT_amlignore="b\n.*", a="", b="", c="")
    assert names(tmp_path) == ["a", "c"]


@pytest.mark.parametrize(
    ("lines", "ignored", "kept"),
    [
        ("*.pyc", "a.pyc d/e/b.pyc", "a.py pyc"),
        ("# text\n\n\\#x", "#x", "text # x"),
        ("/a", "a", "d/a b"),
        ("d/*.txt", "d/a.txt", "a.txt e/d/a.txt d/e/a.txt"),
        ("**/tmp/*.log", "tmp/a.log x/y/tmp/a.log", "tmp/d/a.log a.log"),
        ("doc/**", "doc/a doc/b/c", "doc x/doc/a"),
        ("a/**/z", "a/z a/b/z a/b/c/z", "z b/a/z"),
        ("*.bin\n!keep.bin", "a.bin d/b.bin", "keep.bin d/keep.bin"),
        ("cache/", "cache/ d/cache/", "cache"),
        ("file[0-9]", "file1 d/file2", "fileA file10"),
        ("file[!0-9]", "fileA", "file1"),
        ("a?c", "abc", "ac a/c"),
        ("a[", "a[", "a"),
        ("trailing  ", "trailing", "other"),
    ],
)
def test_patterns(lines: str, ignored: str, kept: str) -> None:
    """A path that ends with a slash is a directory."""
    rules = ignore_files.parse(lines.split("\n"))

    def is_ignored(path: str) -> bool:
        return ignore_files.is_ignored(rules, path.rstrip("/"), directory=path.endswith("/"))

    assert [path for path in ignored.split() if not is_ignored(path)] == []
    assert [path for path in kept.split() if is_ignored(path)] == []


def test_a_file_that_cannot_be_read_is_not_judged(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(stage.directory / "files", m__1__model_DOT_onnx="x", m__config_DOT_pbtxt="max_batch_sise: 8")
    opened = LocalRepository.open

    def refuse(repository: LocalRepository, path: str) -> BinaryIO:
        if path.endswith("config.pbtxt"):
            raise PermissionError(13, "Permission denied", path)
        return opened(repository, path)

    monkeypatch.setattr(LocalRepository, "open", refuse)  # Root may read every file.
    said = (
        "error: files/m/config.pbtxt: cannot read `m/config.pbtxt`: Permission denied [LocalFileError]\n"
        "hint: make the file readable for the account that runs `ml`\n"
    )
    code, _, err = stage.run("model", "validate", "files")
    assert (code, err) == (1, f"{said}files: not checked completely (1 unreadable file)\n")
    code, _, err = stage.run("model", "create", "-n", "pets", "-p", "files", "-t", "triton_model")
    assert (code, err) == (1, said)
