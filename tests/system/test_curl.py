"""The Triton behind an endpoint, asked by a real curl and by what people use like it: bodies as
they come, without a content type that Triton knows or without a length.

curl calls any body a form unless it is told otherwise.
"""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest

from .stock import ROOT, Array, Scoring

pytestmark = pytest.mark.serving

INFER = f"{ROOT}/v2/models/echo/infer"
#: 20 MB of FP32.
VALUES = np.arange(5_000_000, dtype=np.float32)


#: 12 MB: in chunks the limit is lower.
FEWER = 3_000_000


class Http2Alone(ssl.SSLContext):
    """For a client that offers nothing but HTTP/2, as gRPC does."""

    def __new__(cls) -> Http2Alone:
        return super().__new__(cls, ssl.PROTOCOL_TLS_CLIENT)

    def set_alpn_protocols(self, alpn_protocols: Iterable[str]) -> None:
        super().set_alpn_protocols(["h2"])


@pytest.fixture(autouse=True)
def the_same_processes(scoring: Scoring) -> Iterator[None]:
    """No request ends an instance."""
    before = scoring.product.instances()
    yield
    assert scoring.product.instances() == before


def binary(file: Path, values: Array = VALUES) -> int:
    """Writes Triton's binary form; the length of the JSON in it."""
    size = {"binary_data_size": values.nbytes}
    tensor = {"name": "x", "shape": [values.size], "datatype": "FP32", "parameters": size}
    head = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
    file.write_bytes(head + values.tobytes())
    return len(head)


def in_json(file: Path) -> None:
    data = "[" + ",".join(["1.5"] * VALUES.size) + "]"
    file.write_text(f'{{"inputs":[{{"name":"x","shape":[{VALUES.size}],"datatype":"FP32","data":{data}}}]}}')


def curl(scoring: Scoring, file: Path, answer: Path, *more: str) -> dict[str, str]:
    """By real curl; what it says about the answer, whose body is in ``answer``."""
    program = shutil.which("curl")
    if program is None:
        pytest.skip("curl is not installed")
    host, port = scoring.product.scoring
    told = "%{http_code} %{http_version}\n%header{inference-header-content-length}\n"
    done = subprocess.run(
        [
            *(
                program,
                "-sS",
                "--max-time",
                "60",
                "--cacert",
                str(scoring.product.ca_file),
                "-o",
                str(answer),
                "-w",
                told,
            ),
            *("-H", f"Authorization: Bearer {scoring.key}", "--data-binary", f"@{file}", *more),
            f"https://{host}:{port}{INFER}",
        ],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    status, length = done.stdout.splitlines()
    assert status == "200 1.1", answer.read_bytes()[:1000]
    return {"inference-header-content-length": length}


@pytest.mark.parametrize(
    ("count", "more"),
    [(VALUES.size, ()), (FEWER, ("-H", "Transfer-Encoding: chunked"))],
    ids=["20 MB with its length", "12 MB in chunks"],
)
def test_large_bodies_by_curl(count: int, more: tuple[str, ...], scoring: Scoring, tmp_path: Path) -> None:
    file, answer, values = tmp_path / "request", tmp_path / "answer", VALUES[:count]
    length = binary(file, values)
    told = curl(scoring, file, answer, "-H", f"Inference-Header-Content-Length: {length}", *more)
    assert answer.read_bytes()[int(told["inference-header-content-length"]) :] == values.tobytes()


def test_20_mb_of_json_by_curl(scoring: Scoring, tmp_path: Path) -> None:
    file, answer = tmp_path / "request", tmp_path / "answer"
    in_json(file)
    curl(scoring, file, answer)
    assert json.loads(answer.read_bytes())["outputs"][0]["data"] == [1.5] * VALUES.size


@pytest.mark.parametrize("http2", [False, True], ids=["HTTP/1.1", "HTTP/2"])
@pytest.mark.parametrize("path", ["v2/models/echo/infer", "v2/models/echo/versions/1/infer"])
def test_20_mb_of_a_form(path: str, http2: bool, scoring: Scoring, tmp_path: Path) -> None:
    """In both protocols. curl itself gets HTTP/1.1, as does all that can have it."""
    file = tmp_path / "request"
    headers = {"content-type": "application/x-www-form-urlencoded", **scoring.headers}
    headers["inference-header-content-length"] = str(binary(file))
    trust = Http2Alone() if http2 else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trust.load_verify_locations(scoring.product.ca_file)
    with httpx.Client(verify=trust, http1=not http2, http2=http2, timeout=60, trust_env=False) as client:
        answer = client.post(f"https://{scoring.address}{ROOT}/{path}", headers=headers, content=file.read_bytes())
    assert (answer.status_code, answer.http_version) == (200, "HTTP/2" if http2 else "HTTP/1.1")
    assert answer.content[int(answer.headers["inference-header-content-length"]) :] == VALUES.tobytes()
