"""Azure Blob Storage's XML: lists of blobs and errors as responses, block lists in requests.

Decides the three formats (Azure's pages "List Blobs", "Put Block List" and "Status and error
codes"). Must not know HTTP or the store.
"""

from __future__ import annotations

import re
from email.utils import formatdate
from xml.etree import ElementTree as xml

from amphitrite.controlplane.store.content.blob_rows import Blob, Listing
from amphitrite.schemas.errors import Error

#: Azure's maximum number of blocks in one blob.
BLOCKS_MAX = 50_000
#: Characters that XML 1.0 does not allow.
_INVALID_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_STATES = ("Latest", "Committed", "Uncommitted")


def refusal(code: str, message: str) -> bytes:
    """An ``Error`` document."""
    root = xml.Element("Error")
    _text(root, "Code", code)
    _text(root, "Message", _INVALID_XML.sub("\ufffd", message))
    body: bytes = xml.tostring(root, encoding="utf-8", xml_declaration=True)
    return body


def listing(page: Listing, service: str, container: str, prefix: str, delimiter: str, *, metadata: bool) -> bytes:
    """An ``EnumerationResults`` document, with the metadata of each blob if ``metadata`` is set."""
    root = xml.Element("EnumerationResults", ServiceEndpoint=service, ContainerName=container)
    _text(root, "Prefix", prefix)
    if delimiter:
        _text(root, "Delimiter", delimiter)
    blobs = xml.SubElement(root, "Blobs")
    for blob in page.blobs:
        _blob(blobs, blob, metadata)
    for name in page.prefixes:
        _text(xml.SubElement(blobs, "BlobPrefix"), "Name", name)
    _text(root, "NextMarker", page.next_marker or "")
    body: bytes = xml.tostring(root, encoding="utf-8", xml_declaration=True)
    return body


def block_ids(body: bytes) -> list[str]:
    """The ids in a ``BlockList``, in order. Raises Error InvalidXmlDocument or BlockListTooLong."""
    try:
        # Entities could be expanded to exhaust memory, so a document type is refused before
        # parsing. (Decoded as UTF-8 whatever the declaration says: in another encoding ``<!`` would
        # look different.)
        text = body.decode("utf-8-sig")
        if "<!" in text:
            raise xml.ParseError("a document type or comment is not allowed")
        root = xml.fromstring(text)
    except (xml.ParseError, UnicodeDecodeError, ValueError) as exc:
        raise Error("InvalidXmlDocument", f"the block list is not XML: {exc}") from exc
    if root.tag != "BlockList" or any(child.tag not in _STATES or len(child) for child in root):
        raise Error("InvalidXmlDocument", "the body must be a BlockList of Latest, Committed or Uncommitted")
    if len(root) > BLOCKS_MAX:
        message = f"the block list names {len(root)} blocks; at most {BLOCKS_MAX}"
        raise Error("BlockListTooLong", message, hint="send larger blocks")
    return [child.text or "" for child in root]


def _blob(parent: xml.Element, blob: Blob, metadata: bool) -> None:
    element = xml.SubElement(parent, "Blob")
    _text(element, "Name", blob.path)
    properties = xml.SubElement(element, "Properties")
    _text(properties, "Creation-Time", formatdate(blob.created_at, usegmt=True))
    _text(properties, "Last-Modified", formatdate(blob.modified_at, usegmt=True))
    _text(properties, "Etag", blob.etag)
    _text(properties, "Content-Length", str(blob.size))
    _text(properties, "Content-Type", blob.content_type)
    _text(properties, "BlobType", "BlockBlob")
    if metadata:
        entries = xml.SubElement(element, "Metadata")
        for name, value in blob.metadata.items():
            _text(entries, name, value)


def _text(parent: xml.Element, tag: str, text: str) -> None:
    xml.SubElement(parent, tag).text = text
