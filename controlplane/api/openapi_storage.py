"""The operations of Azure Storage that are answered here, for the OpenAPI document.

Decides what is sent, what is answered and how it is refused. Must not know shapes. A container is open to whoever has
the token, or its address with a signature.
"""

from __future__ import annotations

from collections.abc import Mapping

from amphitrite.controlplane.api.openapi_operation import GATED, Answer, Operation
from amphitrite.controlplane.api.openapi_parameters import BLOB_NAME, BLOB_PATH, IF_MATCH, header
from amphitrite.controlplane.api.storage.code_uploads import PREFIX

BINARY = "application/octet-stream"

_ERRORS = (
    *(*GATED, "AuthorizationFailed", "ResourceNotFound", "BadArgument", "Unsupported"),
    *("InvalidResourceName", "InvalidHeaderValue"),
)
_FOUND = (*_ERRORS, "BlobNotFound")
_WRITTEN = (
    *(*_FOUND, "BlobAlreadyExists", "Conflict", "Md5Mismatch", "InvalidMd5", "RequestTooLarge", "LimitExceeded"),
    *("InvalidBlockId", "InvalidBlockList", "BlockListTooLong", "BlockCountExceedsLimit", "InvalidXmlDocument"),
    *("InvalidMetadata", "MetadataTooLarge", "ConditionHeadersNotSupported"),
)
_HEADERS = ("ETag", "Last-Modified", "Accept-Ranges", "Content-Length", "x-ms-blob-type")
_RANGE = header("x-ms-range", {"type": "string", "pattern": r"^bytes=[0-9]{1,18}-([0-9]{1,18})?$"})
_MD5 = header("Content-MD5", {"type": "string", "pattern": "^[A-Za-z0-9+/]{21}[AQgw]==$"})


def _container(path: str) -> dict[str, Operation]:
    blob = f"{path}/{{path}}"
    return {
        f"GET {path}": Operation(
            "List Blobs of Azure Storage.",
            {200: Answer("The blobs.", "BlobList", "application/xml")},
            _ERRORS,
            xml=True,
            parameters={"restype": {"const": "container"}, "comp": {"const": "list"}},
            required=("restype", "comp"),
        ),
        f"HEAD {blob}": Operation(
            "Get Blob Properties.",
            {200: Answer("Its properties.", headers=_HEADERS)},
            _FOUND,
            xml=True,
            parameters={"path": BLOB_PATH},
        ),
        f"GET {blob}": Operation(
            "Get Blob.",
            {
                200: Answer("The content.", "Binary", headers=_HEADERS),
                206: Answer("A part of it.", "Binary", headers=(*_HEADERS, "Content-Range")),
            },
            (*_FOUND, "InvalidRange", "PreconditionFailed"),
            xml=True,
            headers=(_RANGE, IF_MATCH),
            parameters={"path": BLOB_PATH, "comp": {"const": ""}},
        ),
        f"PUT {blob}": Operation(
            "Put Blob; with comp: Put Block (which needs blockid), Put Block List (XML), Set Blob Metadata.",
            {200: Answer("The metadata is set.", headers=("ETag",)), 201: Answer("It is there.")},
            _WRITTEN,
            "Binary",
            body_media=BINARY,
            xml=True,
            parameters={
                "path": BLOB_NAME,
                "comp": {"enum": ["", "block", "blocklist", "metadata"], "default": ""},
                "blockid": {"type": "string", "default": ""},
            },
            headers=(
                header("x-ms-blob-type", {"const": "BlockBlob"}),
                header("If-None-Match", {"const": "*"}),
                _MD5,
            ),
        ),
    }


OPERATIONS: Mapping[str, Operation] = {
    **_container("/storage/{account}/{container}"),
    **_container(f"/storage/{{account}}/{PREFIX}{{upload}}"),
}
