"""Triton's example clients: what each is run with, or why it cannot be.

Decides the table of examples in ``docs/clients.md``. Must not know how a program is run.

The examples are those of ``src/python/examples`` in Triton's client repository. They are not part
of this one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .served import SEQUENCES, SIMPLE

#: Stands for a picture in the arguments.
PICTURE = "PICTURE"
NO_MEMORY = "shared memory of the client's machine: an endpoint has none"
NO_GPU_MEMORY = "CUDA memory of the client's machine: an endpoint has none"
NO_CONTROL = "loads and unloads models: a deployment decides that"
NO_BACKEND = "needs the vLLM backend, which the wheel's Triton does not have"


@dataclass(frozen=True)
class Example:
    """``runs``: the arguments of each run that ends with 0."""

    name: str
    models: str
    runs: tuple[tuple[str, ...], ...] = ((),)
    endpoint: str = SIMPLE
    absent: str = ""


_COMPRESSED = ("--request-compression-algorithm", "gzip", "--response-compression-algorithm", "deflate")
_KINDS = ("grpc", "grpc_aio", "http", "http_aio")
_TWICE: tuple[tuple[str, ...], ...] = ((), ("-d",))
_SEQUENCES = "simple_sequence, simple_dyna_sequence, simple_string_dyna_sequence"


def _sequences(name: str) -> Example:
    return Example(name, _SEQUENCES, _TWICE, SEQUENCES)


def _cannot(reason: str, *names: str) -> Iterable[Example]:
    return (Example(name, "-", (), absent=reason) for name in names)


EXAMPLES = sorted(
    (
        Example(
            "ensemble_image_client",
            "preprocess_inception_ensemble",
            (("-c", "3", PICTURE), ("-i", "grpc", PICTURE)),
        ),
        Example("grpc_client", "densenet_onnx"),
        Example("grpc_explicit_byte_content_client", "simple_string"),
        Example("grpc_explicit_int8_content_client", "simple_int8"),
        Example("grpc_explicit_int_content_client", "simple"),
        Example(
            "grpc_image_client",
            "pictures",
            (
                ("-m", "pictures", "-c", "3", "-b", "2", PICTURE),
                ("-m", "pictures", "-a", PICTURE),
                ("-m", "pictures", "--streaming", "-s", "INCEPTION", PICTURE),
            ),
        ),
        Example(
            "image_client",
            "pictures",
            (
                ("-m", "pictures", "-c", "3", "-b", "2", PICTURE),
                ("-m", "pictures", "-a", PICTURE),
                ("-i", "grpc", "-m", "pictures", PICTURE),
                ("-i", "grpc", "-m", "pictures", "-a", PICTURE),
                ("-i", "grpc", "-m", "pictures", "--streaming", PICTURE),
            ),
        ),
        Example("memory_growth_test", "custom_identity_int32", (("-r", "5"), ("-i", "grpc", "-r", "5"))),
        Example("simple_grpc_aio_custom_args_client", "simple"),
        Example("simple_grpc_aio_health_metadata", "simple"),
        Example("simple_grpc_aio_infer_client", "simple", ((), ("-C", "deflate", "-t", "30"))),
        Example("simple_grpc_aio_keepalive_client", "simple"),
        _sequences("simple_grpc_aio_sequence_stream_infer_client"),
        _sequences("simple_grpc_aio_sequence_sync_infer_client"),
        Example("simple_grpc_aio_string_infer_client", "simple_string, simple_identity"),
        Example("simple_grpc_async_infer_client", "simple"),
        Example("simple_grpc_custom_args_client", "simple"),
        Example("simple_grpc_custom_repeat", "repeat_int32"),
        Example("simple_grpc_health_metadata", "simple"),
        Example("simple_grpc_infer_client", "simple", ((), ("-C", "gzip", "-t", "30"))),
        Example(
            "simple_grpc_keepalive_client",
            "simple",
            ((), ("--grpc-keepalive-time", "100", "--grpc-keepalive-permit-without-calls")),
        ),
        _sequences("simple_grpc_sequence_stream_infer_client"),
        _sequences("simple_grpc_sequence_sync_infer_client"),
        Example("simple_grpc_string_infer_client", "simple_string, simple_identity"),
        Example("simple_http_aio_health_metadata", "simple"),
        Example("simple_http_aio_infer_client", "simple", ((), _COMPRESSED)),
        _sequences("simple_http_aio_sequence_sync_infer_client"),
        Example("simple_http_aio_string_infer_client", "simple_string, simple_identity"),
        Example("simple_http_async_infer_client", "simple"),
        Example("simple_http_health_metadata", "simple"),
        Example("simple_http_infer_client", "simple", ((), _COMPRESSED)),
        _sequences("simple_http_sequence_sync_infer_client"),
        Example("simple_http_string_infer_client", "simple_string, simple_identity"),
        *_cannot(
            NO_MEMORY,
            "reuse_infer_objects_client",
            *(f"simple_{kind}_shm_client" for kind in _KINDS),
            *(f"simple_{kind}_shm_string_client" for kind in _KINDS),
        ),
        *_cannot(NO_GPU_MEMORY, *(f"simple_{kind}_cudashm_client" for kind in _KINDS)),
        *_cannot(NO_CONTROL, *(f"simple_{kind}_model_control" for kind in _KINDS)),
        *_cannot(NO_BACKEND, "vllm_client"),
    ),
    key=lambda example: example.name,
)  # fmt: skip


HEAD = ("example", "runs", "models, or why not", "also run with")


def rows() -> list[list[str]]:
    """The table of the page."""
    return [
        [
            f"`{one.name}`",
            "no" if one.absent else "yes",
            one.absent or _code(one.models.split(", ")),
            _code(_given(one)),
        ]
        for one in EXAMPLES
    ]


def _given(example: Example) -> list[str]:
    return [" ".join(run).replace(PICTURE, "cat.png") for run in example.runs if run]


def _code(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def command(run: tuple[str, ...], picture: Path) -> list[str]:
    return [str(picture) if argument == PICTURE else argument for argument in run]
