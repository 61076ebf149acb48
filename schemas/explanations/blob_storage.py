"""Codes of uploads and downloads of files, as Azure Blob Storage has them.

Decides their explanations. Must not know where they are raised.
"""

from __future__ import annotations

from amphitrite.schemas.explanations.explanation import Explanation, Section

_CLIENT = "a client of Azure Storage sends something that this server does not accept"
_USE = "use `ml model create`, or a client that docs/sdk.md names"


def _client(code: str, meaning: str) -> Explanation:
    return Explanation(code, meaning, ((_CLIENT, _USE),))


def _named(code: str, ours: str) -> Explanation:
    """A name that only clients which read XML see."""
    meaning = f"Azure Storage's name for {ours}, for clients that ask for XML."
    return Explanation(code, meaning, ((f"as for {ours}", f"run `ml explain {ours}`"),))


BLOB_STORAGE = Section(
    "Files",
    "Uploads and downloads of models and code. `ml` and Azure's SDK avoid most of these.",
    (
        Explanation(
            "BlobNotFound",
            "There is no file with this name in the store.",
            (("the upload is not complete, or was removed", "upload again: `ml model create`"),),
        ),
        Explanation(
            "BlobAlreadyExists",
            "A file with this name and other content exists, and files are never overwritten.",
            (("another upload was faster", "upload again; each upload has a place of its own"),),
        ),
        Explanation(
            "Md5Mismatch",
            "The content that arrived is not the content that was sent.",
            (("a fault on the way, or the file changed meanwhile", "upload again"),),
        ),
        _client("InvalidMd5", "The header Content-MD5 is not a digest in base64."),
        _client("InvalidRange", "The requested range lies outside the file."),
        _client("MissingContentLengthHeader", "An upload needs the header Content-Length."),
        _client("InvalidHeaderValue", "A header has a value that is not allowed."),
        _client("InvalidResourceName", "The name of a file has characters or parts that are not allowed."),
        _client("InvalidMetadata", "The metadata of a file has names or values that are not allowed."),
        _client("MetadataTooLarge", "The metadata of a file is larger than Azure Storage allows."),
        _client("InvalidXmlDocument", "The list of blocks is not the XML that Azure Storage has."),
        _client("InvalidBlockId", "The id of a block is not base64, or has another length than the others."),
        _client("InvalidBlockList", "The list of blocks names one that was not uploaded."),
        _client("BlockListTooLong", "The list has more blocks than Azure Storage allows."),
        _client("BlockCountExceedsLimit", "More blocks were uploaded for one file than Azure Storage allows."),
        _client("ConditionHeadersNotSupported", "The request has a condition that is not supported for it."),
        _named("InvalidInput", "BadArgument"),
        _named("FeatureNotSupported", "Unsupported"),
        _named("ContainerNotFound", "ResourceNotFound"),
        _named("UnsupportedHttpVerb", "MethodNotAllowed"),
        _named("ConditionNotMet", "PreconditionFailed"),
        _named("RequestBodyTooLarge", "RequestTooLarge"),
        _named("OutOfRangeInput", "LimitExceeded"),
        _named("InternalError", "InternalServerError"),
        _named("ServerBusy", "RuntimeUnavailable"),
    ),
)
