"""A real S3 server, made once for each test process, whose clock is the test's."""

from __future__ import annotations

import datetime
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from moto.moto_server.werkzeug_app import MotoRequestHandler, create_backend_app
from moto.s3 import models as of_the_server
from werkzeug.serving import make_server

from amphitrite.controlplane.store.content.s3_content import ContentBucket, connect

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


_PREFIX = "of/us"


@dataclass(frozen=True, slots=True)
class Bucket:
    """One bucket of a test's own, and how a process finds it: ``environment`` is what an operator
    sets."""

    url: str
    name: str
    environment: dict[str, str]

    def names(self) -> list[str]:
        found = self.client().list_objects_v2(Bucket=self.name).get("Contents", [])
        return [listed["Key"] for listed in found]

    def client(self) -> S3Client:
        return _client()

    def content(self, scratch: Path) -> ContentBucket:
        """What the product keeps there, as ``open_content`` has it."""
        return ContentBucket(self.client(), self.name, _PREFIX, scratch)


def bucket(monkeypatch: pytest.MonkeyPatch, clock: Callable[[], float] | None = None) -> Bucket:
    """A fresh one. ``clock`` (seconds since the epoch) decides when objects were modified."""
    environment = {
        "AWS_ENDPOINT_URL": _server(),
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "secret-of-the-store",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    if clock is not None:
        monkeypatch.setattr(
            of_the_server,
            "utcnow",
            lambda: datetime.datetime.fromtimestamp(clock(), datetime.timezone.utc).replace(tzinfo=None),
        )
    made = Bucket("", f"models-{uuid.uuid4().hex}", environment)
    made.client().create_bucket(Bucket=made.name)
    return Bucket(f"s3://{made.name}/{_PREFIX}", made.name, environment)


@cache
def _client() -> S3Client:
    """First asked for when the environment is set. One for all buckets: making it takes a sixth of
    a second."""
    return connect("the tests' store")


@cache
def _server() -> str:
    # The part that is S3: which of all of Amazon's services is meant would be worked out anew for
    # each request.
    server = make_server("127.0.0.1", 0, create_backend_app("s3"), threaded=True, request_handler=MotoRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"
