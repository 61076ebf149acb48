"""Where Triton is found, and what is said when it is not."""

from __future__ import annotations

import logging
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from amphitrite.dataplane.triton import backend_directory, installation, native_backend
from amphitrite.dataplane.triton.command_line import GRPC_RESTRICTED, HTTP_RESTRICTED
from amphitrite.schemas.errors import Error


def executable(path: Path, script: str = "echo 'no such thing' >&2; exit 1") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_the_named_one_comes_first_then_path_then_the_wheel(tmp_path: Path) -> None:
    named = executable(tmp_path / "named" / "bin" / "tritonserver")
    on_path = executable(tmp_path / "path" / "bin" / "tritonserver")
    both = {"TRITON_SERVER": str(named), "PATH": str(on_path.parent)}
    assert installation.locate(both) == installation.Installation(named, tmp_path / "named" / "backends")
    assert installation.locate({"PATH": str(on_path.parent)}).binary == on_path
    wheel = installation.locate({"PATH": str(tmp_path)})
    assert wheel.stub is not None
    assert wheel.binary.parts[-4:] == ("pytriton", "tritonserver", "bin", "tritonserver")


def test_a_name_without_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Error, match="is not an executable file") as caught:
        installation.locate({"TRITON_SERVER": str(tmp_path / "nothing")})
    assert (caught.value.code, bool(caught.value.hint)) == ("RuntimeUnavailable", True)


def test_a_triton_that_does_not_run_is_refused_with_its_words(tmp_path: Path) -> None:
    broken = installation.locate({"TRITON_SERVER": str(executable(tmp_path / "bin" / "tritonserver"))})
    with pytest.raises(Error, match="no such thing") as caught:
        installation.supported_options(broken, ["--id"])
    assert caught.value.code == "RuntimeUnavailable"


def test_a_missing_library_of_python_is_told_without_the_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path))
    monkeypatch.setattr("sysconfig.get_config_var", lambda name: None)
    monkeypatch.setattr("ctypes.util.find_library", lambda name: None)
    monkeypatch.setattr(sys, "version_info", (3, 11, 2))
    machine = {"PATH": str(tmp_path)}
    with pytest.raises(Error, match=r"libpython3\.11\.so\.1\.0 is missing") as caught:
        installation.require_python_library(machine)
    assert "apt-get install libpython3.11" in caught.value.hint
    installation.require_python_library({**machine, "TRITON_SERVER": "/opt/tritonserver/bin/tritonserver"})
    monkeypatch.setattr(sys, "version_info", (*installation.PYTHON_IN_WHEEL, 1))
    installation.require_python_library(machine)


def test_the_wheel_has_the_library_of_one_python(tmp_path: Path) -> None:
    libraries = installation.locate({"PATH": str(tmp_path)}).libraries[0]
    [library] = libraries.glob("libpython*")
    major, minor = installation.PYTHON_IN_WHEEL
    assert library.match(f"libpython{major}-*.{minor}.so.1.0")


def test_the_wheel_runs_and_knows_its_options(tmp_path: Path) -> None:
    wheel = installation.locate({"PATH": str(tmp_path)})
    options = {"--exit-timeout-secs", HTTP_RESTRICTED, GRPC_RESTRICTED}
    assert installation.supported_options(wheel, {*options, "--no-such-option"}) == options


FORMS = [("native", {"libtriton_onnxruntime.so", "libonnxruntime.so"}), ("python", {"model.py"})]


@pytest.mark.parametrize(("form", "files"), FORMS)
def test_the_backend_directory_is_made_once(tmp_path: Path, form: str, files: set[str]) -> None:
    wheel = installation.locate({"PATH": str(tmp_path)})
    machine = {**os.environ, native_backend.VARIABLE: form}
    made = backend_directory.prepare(wheel, tmp_path / "backends", machine)
    assert {p.name for p in (made / "onnxruntime").iterdir() if p.is_file()} == files
    assert {"libtriton_python.so", "triton_python_backend_stub"} <= {p.name for p in (made / "python").iterdir()}
    assert backend_directory.prepare(wheel, tmp_path / "backends", machine) == made
    assert [p.name for p in (tmp_path / "backends").iterdir()] == [made.name]


@pytest.mark.parametrize("form", [form for form, _ in FORMS])
def test_a_damaged_backend_directory_is_made_again(tmp_path: Path, form: str) -> None:
    wheel = installation.locate({"PATH": str(tmp_path)})
    machine = {**os.environ, native_backend.VARIABLE: form}
    made = backend_directory.prepare(wheel, tmp_path / "backends", machine)
    for file in sorted(path for path in made.rglob("*") if path.is_file() and not path.is_symlink()):
        good = file.read_bytes()
        with file.open("rb") as in_use:
            change_a_byte(file)
            changed = file.read_bytes()
            assert backend_directory.prepare(wheel, tmp_path / "backends", machine) == made
            assert (file.read_bytes(), in_use.read()) == (good, changed)
    assert [p.name for p in (tmp_path / "backends").iterdir()] == [made.name]


def change_a_byte(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.chmod(0o755)
    path.write_bytes(data)


def test_a_full_triton_keeps_its_backends(tmp_path: Path) -> None:
    full = installation.Installation(tmp_path / "bin" / "tritonserver", tmp_path / "backends")
    assert backend_directory.prepare(full, tmp_path / "other") == tmp_path / "backends"


#: What the compiler is, and what is said of it.
COMPILERS = [
    (None, "no C++ compiler"),
    ("echo 'no such header' >&2; exit 1", "c++ failed: no such header"),
    ('while [ "$1" != -o ]; do shift; done; echo nonsense > "$2"', "it does not work with libonnxruntime.so"),
]


@pytest.mark.parametrize(("script", "words"), COMPILERS, ids=["none", "broken", "wrong"])
def test_without_a_working_compiler_the_python_backend_serves(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    script: str | None,
    words: str,
) -> None:
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)  # Else its cache would be that of this environment.
    machine = {"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path)}
    if script is not None:
        executable(tmp_path / "bin" / "c++", script)
    with caplog.at_level(logging.INFO):
        assert native_backend.find(machine) is None
    assert words in caplog.text
    with pytest.raises(Error, match="the native onnxruntime backend is not available") as caught:
        native_backend.find({**machine, native_backend.VARIABLE: "native"})
    assert (caught.value.code, words in caught.value.message) == ("RuntimeUnavailable", True)


@pytest.mark.slow
def test_it_is_compiled_once_and_for_all_homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    calls, ready = tmp_path / "calls", native_backend.find({**os.environ, native_backend.VARIABLE: "native"})
    assert ready is not None
    write = f'echo x >> {calls}; while [ "$1" != -o ]; do shift; done; cp {ready.library} "$2"'
    executable(tmp_path / "bin" / "c++", write)
    machine = {"PATH": f"{tmp_path / 'bin'}:{os.defpath}", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(native_backend.find, [machine] * 4))
    first = found[0]
    assert first is not None and found == [first] * 4
    assert (first.library.read_bytes(), calls.read_text()) == (ready.library.read_bytes(), "x\n")
    change_a_byte(first.library)
    assert [native_backend.find(machine) for _ in range(2)] == [first] * 2
    assert (first.library.read_bytes(), calls.read_text()) == (ready.library.read_bytes(), "x\nx\n")


def test_an_unknown_form_is_refused() -> None:
    with pytest.raises(Error, match="must be one of: auto, native, python") as caught:
        native_backend.find({native_backend.VARIABLE: "rust"})
    assert caught.value.target == native_backend.VARIABLE
