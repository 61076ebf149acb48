"""One real Triton for all tests of each form of the backend."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from amphitrite.dataplane.table.routing_table import Address
from amphitrite.dataplane.triton import backend_directory, command_line, http_api, installation, native_backend
from amphitrite.dataplane.triton.command_line import Options

from ...ports import free_port
from . import sequence_models
from .onnx_models import write_all

MODELS = ("types", "sequence", "nearly", "scalar", "configured", "pick", "liar", "model_1", sequence_models.TWIN)
MODELS += tuple(model.name for model in sequence_models.MODELS)


@pytest.fixture(scope="session", params=["native", "python"])
def triton(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    root = tmp_path_factory.mktemp("triton")
    sequence_models.write_sequences(root / "models", texts=request.param == "native")
    machine = {**os.environ, native_backend.VARIABLE: request.param}
    address = Address("127.0.0.1", free_port())
    found = installation.locate(os.environ)
    options = Options(
        repository=write_all(root / "models"),
        backends=backend_directory.prepare(found, root / "backends", machine),
        address=address,
        shm_prefix=f"amphitrite-tests-{os.getpid()}.",
    )
    environment = command_line.environment(found, os.environ, marker="tests", cores=2, gpus=False, variables={})
    log = root / "log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            command_line.arguments(found, options), env=environment, stdout=stream, stderr=stream, cwd=root
        )
    try:
        # The Python form starts two processes for each model, one after the other.
        deadline = time.monotonic() + 240
        while not http_api.ready(address, MODELS, 2):
            assert process.poll() is None, log.read_text()[-5000:]
            assert time.monotonic() < deadline, log.read_text()[-5000:]
        yield address
    finally:
        process.terminate()
        process.wait(60)
    assert not list(Path("/dev/shm").glob(f"{options.shm_prefix}*"))
