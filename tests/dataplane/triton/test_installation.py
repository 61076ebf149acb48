"""Where Triton is found, and what is said when it is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from amphitrite.dataplane.triton import backend_directory, installation
from amphitrite.dataplane.triton.command import GRPC_RESTRICTED, HTTP_RESTRICTED
from amphitrite.schemas.errors import Error


def executable(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\necho 'no such thing' >&2; exit 1\n")
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
        installation.known(broken, ["--id"])
    assert caught.value.code == "RuntimeUnavailable"


def test_the_wheel_runs_and_knows_its_options(tmp_path: Path) -> None:
    wheel = installation.locate({"PATH": str(tmp_path)})
    options = {"--exit-timeout-secs", HTTP_RESTRICTED, GRPC_RESTRICTED}
    assert installation.known(wheel, {*options, "--no-such-option"}) == options


def test_the_backend_directory_is_made_once(tmp_path: Path) -> None:
    wheel = installation.locate({"PATH": str(tmp_path)})
    made = backend_directory.prepare(wheel, tmp_path / "backends")
    assert (made / "onnxruntime" / "model.py").is_file()
    assert {"libtriton_python.so", "triton_python_backend_stub"} <= {p.name for p in (made / "python").iterdir()}
    assert backend_directory.prepare(wheel, tmp_path / "backends") == made
    assert [p.name for p in (tmp_path / "backends").iterdir()] == [made.name]


def test_a_full_triton_keeps_its_backends(tmp_path: Path) -> None:
    full = installation.Installation(tmp_path / "bin" / "tritonserver", tmp_path / "backends")
    assert backend_directory.prepare(full, tmp_path / "other") == tmp_path / "backends"
