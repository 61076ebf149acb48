"""The one error of the product, from the planner to the REST body to the terminal.

Decides which codes exist, which HTTP status each has, and the wire shape (Azure Resource Manager's:
``{"error": {"code", "message", "target", "details": [...], "additionalInfo": [...]}}``).
Must not know who raises it or who prints it.

There are no subclasses: whoever must tell two errors apart compares ``code``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

#: code -> HTTP status. Names are Azure ML's where Azure has one (troubleshooting page of online endpoints).
CODES: Mapping[str, int] = {
    "InvalidDocument": 400,
    "BadArgument": 400,
    "UserError": 400,
    "Unsupported": 400,
    "AuthenticationFailed": 401,
    "AuthorizationFailed": 403,
    "ResourceNotFound": 404,
    "BlobNotFound": 404,
    "MethodNotAllowed": 405,
    "Conflict": 409,
    "BlobAlreadyExists": 409,
    "PreconditionFailed": 412,
    "RequestTooLarge": 413,
    "Md5Mismatch": 400,
    "InvalidRange": 416,
    "LimitExceeded": 400,
    # Of blobs, in Azure Storage's words, as are some of the above.
    "MissingContentLengthHeader": 411,
    "InvalidMd5": 400,
    "InvalidHeaderValue": 400,
    "InvalidResourceName": 400,
    "InvalidMetadata": 400,
    "MetadataTooLarge": 400,
    "InvalidXmlDocument": 400,
    "InvalidBlockId": 400,
    "InvalidBlockList": 400,
    "BlockListTooLong": 400,
    "BlockCountExceedsLimit": 409,
    "ConditionHeadersNotSupported": 400,
    "ResourceNotReady": 500,
    "DeploymentCrashLoopBackOff": 500,
    "OperationCanceled": 500,
    # Of a cluster, in Azure's words.
    "OutOfQuota": 400,
    "PodUnschedulable": 500,
    "PodOutOfMemory": 500,
    "ImagePullLoopBackOff": 500,
    "KubernetesCrashLoopBackOff": 500,
    "KubernetesUnaccessible": 503,
    "NamespaceNotFound": 400,
    "InvalidDeploymentSpec": 400,
    "RoutingRejected": 500,
    "InternalServerError": 500,
    "RuntimeUnavailable": 503,
    # Raised by clients only; they never travel in a response of ours.
    "ServerUnreachable": 503,
    "UsageError": 400,
    "LocalFileError": 400,
    "PortInUse": 409,
    "ScoringFailed": 502,
}


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing wrong with a document.

    ``path`` is a tuple of keys and indexes from the document's root, ``()`` for the root itself. ``location`` is
    ``file:line:column`` (1-based) when the document came from a file and is filled in by whoever knows the file.
    ``about_key``: the key itself is wrong, not its value; it decides the column only, and does not travel.
    """

    path: tuple[str | int, ...]
    message: str
    hint: str | None = None
    location: str | None = None
    about_key: bool = field(default=False, compare=False)

    @property
    def dotted(self) -> str:
        """``tags.team``, ``deployments[0].name``; empty for the root."""
        text = ""
        for step in self.path:
            text += f"[{step}]" if isinstance(step, int) else (f".{step}" if text else step)
        return text

    def __str__(self) -> str:
        return ": ".join(part for part in (self.location, self.dotted, self.message) if part)


class Error(Exception):
    """A refusal or failure that a user can act on.

    ``message`` says what happened, ``hint`` what to do about it, ``target`` which resource, field or address it
    is about, ``violations`` everything wrong with a document. Raises ValueError for a code that is not in CODES.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        target: str | None = None,
        hint: str | None = None,
        violations: Sequence[Violation] = (),
    ) -> None:
        if code not in CODES:
            raise ValueError(f"unknown error code {code!r}")
        super().__init__(message)
        self.code = code
        self.message = message
        self.target = target
        self.hint = hint
        self.violations = tuple(violations)

    @property
    def status(self) -> int:
        """HTTP status of this error."""
        return CODES[self.code]

    def _key(self) -> tuple[object, ...]:
        return (self.code, self.message, self.target, self.hint, self.violations)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Error) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"Error({self.code!r}, {self.message!r}, target={self.target!r}, hint={self.hint!r})"

    def to_body(self) -> dict[str, Any]:
        """The value of ``error`` in a response body. ``details`` repeats the violations in ARM's shape."""
        body: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.target:
            body["target"] = self.target
        if self.violations:
            body["details"] = [
                {
                    "code": "InvalidField",
                    "message": v.message,
                    "target": v.dotted,
                    "additionalInfo": [{"type": "violation", "info": {"path": list(v.path), "hint": v.hint}}],
                }
                for v in self.violations
            ]
        if self.hint:
            body["additionalInfo"] = [{"type": "hint", "info": {"hint": self.hint}}]
        return body

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> Error:
        """The inverse of :meth:`to_body`; a code that this version does not know becomes InternalServerError."""
        code = str(body.get("code", "InternalServerError"))
        hint = None
        for info in body.get("additionalInfo") or ():
            if info.get("type") == "hint":
                hint = info["info"].get("hint")
        violations = []
        for detail in body.get("details") or ():
            infos = [i["info"] for i in detail.get("additionalInfo") or () if i.get("type") == "violation"]
            facts: dict[str, Any] = infos[0] if infos else {}
            path = tuple(facts.get("path", ()))
            violations.append(Violation(path, str(detail.get("message", "")), facts.get("hint")))
        message = str(body.get("message", ""))
        if code not in CODES:
            message, code = f"{code}: {message}", "InternalServerError"
        return cls(code, message, target=body.get("target"), hint=hint, violations=violations)
