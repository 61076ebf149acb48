"""Content in an S3 object store.

Decides object names (``<prefix>/sha256/ab/<digest>``, ``<prefix>/blocks/<name>``), that a body is
spooled to the local disk until its digest is known and then stored as a whole, and the hints for an
operator. An object's LastModified says when its content was last stored: content that exists is
stored again, which also replaces a damaged object. Must not know references. boto3 reads the
endpoint, region and keys (``AWS_*``).
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amphitrite.controlplane.store.content.content_store import Entry, damaged, is_digest, require_digest
from amphitrite.controlplane.store.content.spool import CHUNK, Chunks, Upload, disk_errors, remove_older
from amphitrite.controlplane.store.content.verified_files import VerifiedFiles
from amphitrite.schemas.errors import Error

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

log = logging.getLogger(__name__)

#: The part size of a transfer. S3 allows 10,000 parts, so the largest file has 625 GiB.
_PART_BYTES = 64 * 1024**2
#: The maximum number of objects in one DeleteObjects request.
_BATCH = 1000
_GONE = ("404", "NoSuchKey", "NotFound", "NoSuchUpload")
_HINTS = {
    "NoSuchBucket": "create the bucket, or check its name in --models (ML_MODELS_URL)",
    "InvalidAccessKeyId": "check AWS_ACCESS_KEY_ID",
    "SignatureDoesNotMatch": "check AWS_SECRET_ACCESS_KEY and AWS_REGION",
    "NoCredentialsError": "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or assign a role to this process",
    "PermanentRedirect": "check AWS_REGION: the bucket is in another region",
}
_PERMISSIONS = (
    "allow s3:ListBucket, s3:ListBucketMultipartUploads on the bucket and s3:GetObject, s3:PutObject, s3:DeleteObject, "
    "s3:AbortMultipartUpload on its objects"
)
_ADDRESS = "check AWS_ENDPOINT_URL, AWS_REGION and that this host can reach the endpoint"


def open_bucket(bucket: str, prefix: str, scratch: Path, part_bytes: int = _PART_BYTES) -> ContentBucket:
    """The content store in a bucket. If the object store does not answer now, it is used later.

    Raises Error Unsupported (boto3 is not installed) or RuntimeUnavailable (no such bucket, or
    missing or wrong credentials).
    """
    content = ContentBucket(connect(f"s3://{bucket}/{prefix}".rstrip("/")), bucket, prefix, scratch, part_bytes)
    content.check()
    return content


def connect(place: str) -> S3Client:
    """A client with boto3's default chain of credentials. It sends no request yet.

    ``place``: the URL, for errors. Raises Error Unsupported (boto3 is not installed) or
    RuntimeUnavailable (invalid settings).
    """
    try:
        import boto3
        from botocore.config import Config
    except ImportError as exc:
        message = "boto3, which is required for models in S3, is not installed"
        hint = "in a checkout of amphitrite: pip install '.[cluster]'"
        raise Error("Unsupported", message, target="models", hint=hint) from exc
    with _s3_errors(place):
        config = Config(
            signature_version="s3v4",
            connect_timeout=5,
            read_timeout=60,
            retries={"mode": "standard", "total_max_attempts": 4},
            max_pool_connections=32,
            # Readers check the digest, and some object stores return wrong checksums for copies.
            response_checksum_validation="when_required",
        )
        return boto3.session.Session().client("s3", config=config)


class ContentBucket:
    """Implements ``content_store.Content``. ``scratch``: where uploads are spooled."""

    def __init__(
        self, client: S3Client, bucket: str, prefix: str, scratch: Path, part_bytes: int = _PART_BYTES
    ) -> None:
        from boto3.s3.transfer import TransferConfig

        self._client, self._bucket, self._prefix = client, bucket, f"{prefix}/" if prefix else ""
        self._temporary = scratch / "uploads"
        self._transfer = TransferConfig(
            multipart_threshold=part_bytes, multipart_chunksize=part_bytes, max_concurrency=4
        )
        self.verified = VerifiedFiles()
        self._intact: dict[str, tuple[Any, ...]] = {}
        with disk_errors(scratch):
            self._temporary.mkdir(mode=0o700, parents=True, exist_ok=True)

    @property
    def place(self) -> str:
        return f"s3://{self._bucket}/{self._prefix}".rstrip("/")

    def check(self) -> None:
        """Raises Error RuntimeUnavailable for what an operator must fix."""
        from botocore.exceptions import ClientError, ConnectionError, HTTPClientError

        with _s3_errors(self.place):
            try:
                self._client.list_objects_v2(Bucket=self._bucket, Prefix=self._prefix, MaxKeys=1)
            except (ClientError, ConnectionError, HTTPClientError) as exc:
                if isinstance(exc, ClientError) and exc.response["ResponseMetadata"]["HTTPStatusCode"] < 500:
                    raise
                log.warning("%s does not answer: %s; starting without it", self.place, exc)

    def begin(self, max_bytes: int) -> Upload:
        return Upload(self._temporary, max_bytes, self._persist, self._persist_block)

    def size(self, digest: str) -> int | None:
        head = self._head(self._key(digest))
        return None if head is None else int(head["ContentLength"])

    def intact(self, digest: str) -> bool:
        head = self._head(self._key(digest))
        if head is None:
            return False
        # An object with other content has another ETag.
        identity = (head["ETag"], head["LastModified"], head["ContentLength"])
        if self._intact.get(digest) == identity:
            return True
        sha256 = hashlib.sha256()
        try:
            for data in self._get(self._key(digest), None):
                sha256.update(data)
        except LookupError:
            return False
        if sha256.hexdigest() != digest:
            return False
        self._intact[digest] = identity
        return True

    def read(self, digest: str, first: int, end: int, *, verified: bool = True) -> Chunks:
        return self._get(self._key(digest), f"bytes={first}-{end - 1}" if end > first else None)

    def forget_cached(self, digest: str) -> None:
        """Nothing is cached here."""

    def lay_out(self, digest: str, target: Path) -> None:
        sha256 = hashlib.sha256()
        chunks = self._get(self._key(digest), None)
        with disk_errors(target.parent), target.open("xb") as file:
            for data in chunks:
                sha256.update(data)
                file.write(data)
        if sha256.hexdigest() != digest:
            raise damaged(digest, f"an object in {self.place}")
        with disk_errors(target.parent):
            target.chmod(0o444)
            self.verified.remember(target, digest)

    def url(self, digest: str, seconds: int) -> str | None:
        parameters = {"Bucket": self._bucket, "Key": self._key(digest)}
        with _s3_errors(self.place):
            return self._client.generate_presigned_url("get_object", Params=parameters, ExpiresIn=seconds)

    def digests(self) -> Iterator[str]:
        for listed in self._list("sha256/"):
            name = str(listed["Key"]).rpartition("/")[2]
            if is_digest(name):
                yield name

    def entries(self) -> Iterator[Entry]:
        return (entry for entry in self._entries("sha256/") if is_digest(entry.name))

    def unfinished(self) -> Iterator[Entry]:
        with disk_errors(self._temporary):
            for file in self._temporary.iterdir():
                with suppress(FileNotFoundError):
                    status = file.stat()
                    yield Entry(file.name, status.st_size, status.st_mtime)
        yield from self._entries("blocks/")

    def discard_older(self, digest: str, before: float) -> bool:
        head = self._head(self._key(digest))
        if head is None or head["LastModified"].timestamp() >= before:
            return False
        with _s3_errors(self.place):
            self._client.delete_object(Bucket=self._bucket, Key=self._key(digest))
        return True

    def read_block(self, name: str) -> Chunks:
        return self._get(self._block_key(name), None)

    def drop_blocks(self, names: Iterable[str]) -> None:
        keys = [{"Key": self._block_key(name)} for name in names]
        with _s3_errors(self.place):
            for start in range(0, len(keys), _BATCH):
                batch: Any = {"Objects": keys[start : start + _BATCH], "Quiet": True}
                self._client.delete_objects(Bucket=self._bucket, Delete=batch)

    def drop_unfinished(self, before: float, blocks: Collection[str]) -> None:
        with disk_errors(self._temporary):
            remove_older(self._temporary, before)
        old = [str(listed["Key"]) for listed in self._list("blocks/") if listed["LastModified"].timestamp() < before]
        self.drop_blocks(name for key in old if (name := key.rpartition("/")[2]) not in blocks)
        with _s3_errors(self.place):
            pages = self._client.get_paginator("list_multipart_uploads")
            for page in pages.paginate(Bucket=self._bucket, Prefix=self._prefix):
                for unfinished in page.get("Uploads", ()):
                    if unfinished["Initiated"].timestamp() < before:
                        self._client.abort_multipart_upload(
                            Bucket=self._bucket, Key=unfinished["Key"], UploadId=unfinished["UploadId"]
                        )

    def _key(self, digest: str) -> str:
        return f"{self._prefix}sha256/{require_digest(digest)[:2]}/{digest}"

    def _block_key(self, name: str) -> str:
        return f"{self._prefix}blocks/{name}"

    def _persist(self, temporary: Path, digest: str) -> None:
        self._put(temporary, self._key(digest))
        temporary.unlink()

    def _persist_block(self, temporary: Path, name: str) -> None:
        self._put(temporary, self._block_key(name))
        temporary.unlink()

    def _put(self, temporary: Path, key: str) -> None:
        """The object appears once all of it is stored and the store has verified each part's
        checksum."""
        with _s3_errors(self.place):
            self._client.upload_file(
                str(temporary), self._bucket, key, ExtraArgs={"ChecksumAlgorithm": "SHA256"}, Config=self._transfer
            )

    def _head(self, key: str) -> Any:
        from botocore.exceptions import ClientError

        with _s3_errors(self.place):
            try:
                return self._client.head_object(Bucket=self._bucket, Key=key)
            except ClientError as exc:
                if exc.response["Error"]["Code"] not in _GONE:
                    raise
                return None

    def _get(self, key: str, range_: str | None) -> Chunks:
        """The object is already open when this returns."""
        from botocore.exceptions import ClientError

        with _s3_errors(self.place):
            try:
                part: Any = {} if range_ is None else {"Range": range_}
                body = self._client.get_object(Bucket=self._bucket, Key=key, **part)["Body"]
            except ClientError as exc:
                if exc.response["Error"]["Code"] not in _GONE:
                    raise
                raise LookupError(key) from None

        def pieces() -> Iterator[bytes]:
            with _s3_errors(self.place):
                yield from body.iter_chunks(CHUNK)

        return Chunks(pieces(), body.close)

    def _entries(self, below: str) -> Iterator[Entry]:
        for listed in self._list(below):
            name = str(listed["Key"]).rpartition("/")[2]
            yield Entry(name, int(listed["Size"]), listed["LastModified"].timestamp())

    def _list(self, below: str) -> Iterator[Any]:
        with _s3_errors(self.place):
            pages = self._client.get_paginator("list_objects_v2")
            for page in pages.paginate(Bucket=self._bucket, Prefix=f"{self._prefix}{below}"):
                yield from page.get("Contents", ())


@contextmanager
def _s3_errors(place: str) -> Iterator[None]:
    """Turns errors of botocore and boto3 into Error RuntimeUnavailable, with a hint."""
    from boto3.exceptions import Boto3Error
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except ClientError as exc:
        raise _refusal(place, exc.response) from exc
    except (BotoCoreError, Boto3Error) as exc:
        # A transfer wraps the store's answer in its own exception.
        if isinstance(exc.__context__, ClientError):
            raise _refusal(place, exc.__context__.response) from exc
        hint = _HINTS.get(type(exc).__name__, _ADDRESS)
        raise Error("RuntimeUnavailable", f"the object store cannot be used: {exc}", target=place, hint=hint) from exc


def _refusal(place: str, response: Any) -> Error:
    code = response["Error"]["Code"]
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    hint = _HINTS.get(code) or (_PERMISSIONS if status == 403 else _ADDRESS)
    reason = response["Error"].get("Message") or code
    return Error("RuntimeUnavailable", f"the object store refused the request: {reason}", target=place, hint=hint)
