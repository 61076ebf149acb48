"""The error of the whole product, in code, in REST bodies and on the terminal.

Decides the codes, the HTTP status of each code, and the wire shape. Must not know who raises or
prints an error. There are no subclasses: callers compare ``code``. Outside contract: Azure Resource
Manager's error response, ``{"error": {"code", "message", "target", "details": [...],
"additionalInfo": [...]}}``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

#: Codes that only the proxy at a scoring address has -> HTTP status.
SCORING_CODES: Mapping[str, int] = {
    "BadRequest": 400,
    "Forbidden": 403,
    "DeploymentNotFound": 404,
    "NoScoringModel": 404,
    "NoTraffic": 404,
    "RequestTimeout": 408,
    "LengthRequired": 411,
    "UnsupportedMediaType": 415,
    "ModelError": 424,
    "TooManyRequests": 429,
    "HeadersTooLarge": 431,
    "ClientClosedRequest": 499,
    "NotImplemented": 501,
    "InvalidAnswer": 502,
    "DeploymentNotReady": 503,
    "DeploymentPaused": 503,
    "DeploymentWaking": 503,
    "InstanceConnectionLost": 503,
    "NoHealthyInstance": 503,
    "Overloaded": 503,
}
#: Code -> HTTP status. The codes are Azure ML's if Azure has one ("Troubleshoot online endpoints").
CODES: Mapping[str, int] = {
    "InvalidDocument": 400,
    "BadArgument": 400,
    "UserError": 400,
    "HttpsRequired": 400,
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
    # Codes of Azure Blob Storage, as are some of the above.
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
    # Azure ML's codes for clusters.
    "OutOfQuota": 400,
    "PodUnschedulable": 500,
    "PodOutOfMemory": 500,
    "ImagePullLoopBackOff": 500,
    "KubernetesCrashLoopBackOff": 500,
    "KubernetesUnaccessible": 503,
    "NamespaceNotFound": 400,
    "InvalidDeploymentSpec": 400,
    "RoutingRejected": 500,
    "DamagedContent": 500,
    "InternalServerError": 500,
    "RuntimeUnavailable": 503,
    # Only clients raise these. They never occur in a response.
    "ServerUnreachable": 503,
    "UsageError": 400,
    "LocalFileError": 400,
    "PortInUse": 409,
    "ScoringFailed": 502,
    **SCORING_CODES,
}
#: Those that never occur in a response.
CLIENT_CODES = frozenset({"ServerUnreachable", "UsageError", "LocalFileError", "PortInUse", "ScoringFailed"})


#: The message about a required field that is not there.
MISSING = "required, but missing"


@dataclass(frozen=True, slots=True)
class Violation:
    """One problem of a document.

    ``path``: keys and indexes from the document's root, ``()`` for the root itself. ``location``:
    ``file:line:column`` (1-based) of a document in a file, added by the reader of the file.
    ``about_key``: the key itself is wrong, not its value. It only decides the column, and is not
    sent.
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
        # An option that is named like the field says the field already.
        option = (self.location or "").removeprefix("--set ").removeprefix("--").replace("-", "_")
        field = "" if option == self.dotted else self.dotted
        return ": ".join(part for part in (self.location, field, self.message) if part)


class Error(Exception):
    """A refusal or failure that a user can act on.

    ``message``: what happened. ``hint``: what to do about it. ``target``: the resource, field or
    address. ``violations``: all problems of a document. Raises ValueError for a code that is not in
    CODES.
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
        """The value of ``error`` in a response body. ``details`` holds the violations."""
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
        """The inverse of :meth:`to_body`. An unknown code becomes InternalServerError."""
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
