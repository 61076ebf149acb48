"""Triton's example clients, unmodified, by ``examples/triton-clients/at_endpoint.py``: those that
``AMPHITRITE_TRITON_EXAMPLES`` names (``src/python/examples`` of a checkout of Triton's client
repository). A program of ours takes their place where it does not."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from . import page
from .served import SIMPLE, Served
from .triton_examples import EXAMPLES, HEAD, command, rows

ROOT = Path(__file__).parents[2]
AT_ENDPOINT = ROOT / "examples" / "triton-clients" / "at_endpoint.py"
PICTURE = ROOT / "examples" / "single-model" / "chelsea.png"
#: What the examples do that knows addresses in the clear, once for each kind of client.
PROGRAM = """
import asyncio, sys
import grpc, numpy as np
import tritonclient.grpc as by_grpc, tritonclient.http as by_http
import tritonclient.grpc.aio as by_grpc_aio, tritonclient.http.aio as by_http_aio
from tritonclient.grpc import service_pb2, service_pb2_grpc

def asked(module):
    tensor = module.InferInput("INPUT0", [1, 2], "INT32")
    tensor.set_data_from_numpy(np.array([[4, 2]], np.int32))
    return {"model_name": "custom_identity_int32", "inputs": [tensor]}

async def later(module, address):
    async with module.InferenceServerClient(url=address) as client:
        return (await client.infer(**asked(module))).as_numpy("OUTPUT0").tolist()

assert sys.argv[1:] == ["-v", "1"] and __name__ == "__main__"
for module, address in ((by_http, "localhost:8000"), (by_grpc, "localhost:8001")):
    with module.InferenceServerClient(address, False) as client:
        print(client.infer(**asked(module)).as_numpy("OUTPUT0").tolist())
for module, address in ((by_http_aio, "localhost:8000"), (by_grpc_aio, "localhost:8001")):
    print(asyncio.run(later(module, address)))
with grpc.insecure_channel("localhost:8001") as channel:
    stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
    print(stub.ModelReady(service_pb2.ModelReadyRequest(name="simple")).ready)
"""


def at_endpoint(served: Served, program: str, *arguments: str, endpoint: str = SIMPLE) -> tuple[int, str]:
    given = {"SCORING_URI": served.uri(endpoint), "SCORING_KEY": served.keys[endpoint]}
    done = served.program(sys.executable, str(AT_ENDPOINT), program, *arguments, **given)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.serving
def test_a_program_that_knows_localhost_reaches_the_endpoint(served: Served, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    assert at_endpoint(served, str(program), "-v", "1") == (0, "[[4, 2]]\n" * 4 + "True\n")


@pytest.mark.serving
def test_triton_s_examples(served: Served) -> None:
    folder = os.environ.get("AMPHITRITE_TRITON_EXAMPLES")
    if not folder:
        pytest.skip("AMPHITRITE_TRITON_EXAMPLES does not name src/python/examples of Triton's client repository")
    failed = []
    for example in EXAMPLES:
        for run in example.runs:
            program = str(Path(folder, f"{example.name}.py"))
            code, said = at_endpoint(served, program, *command(run, PICTURE), endpoint=example.endpoint)
            if code:
                failed.append(f"{example.name} {' '.join(run)}: {code}\n{said[-2000:]}")
    assert not failed, "\n".join(failed)


def test_the_page_has_a_row_for_each_example(request: pytest.FixtureRequest) -> None:
    page.compare("examples", page.table(HEAD, rows()), request)
