"""Codes of commands and requests that are refused, and of a control plane that cannot answer.

Decides their explanations. Must not know where they are raised.
"""

from __future__ import annotations

from amphitrite.schemas.explanations.explanation import Explanation, Section

REFUSED_REQUESTS = Section(
    "Refused commands and requests",
    "The control plane or `ml` refused something. Nothing was changed.",
    (
        Explanation(
            "InvalidDocument",
            "A document (YAML file, `--set`, request body) breaks its schema or a rule. All its errors are reported at "
            "once, each with file, line and column.",
            (
                ("a field is unknown, misspelt or of the wrong type", "follow the hint below the error"),
                (
                    "the document names a model, deployment or instance type that does not exist",
                    "create it first, or correct the name; the hint lists what exists",
                ),
                (
                    "it is a document of another kind",
                    "pass it to the command of its kind, or to `ml apply`; docs/reference has each kind's fields",
                ),
            ),
        ),
        Explanation(
            "InvalidField",
            "One of the errors of a document. It stands in the `details` of an InvalidDocument or UserError in a "
            "response.",
            (("as for InvalidDocument", "correct the field that `target` names"),),
        ),
        Explanation(
            "BadArgument",
            "A value of an option, a setting, a parameter or a body is not allowed. The message names it, what was "
            "found and what is allowed.",
            (
                ("a typing error, or a value of another release", "use one of the values that the message allows"),
                ("the answer to a question was no", "nothing was changed; `--yes` answers yes"),
            ),
        ),
        Explanation(
            "UserError",
            "The request is well-formed but cannot be carried out as things are.",
            (
                (
                    "Triton would not load the model's files",
                    "run `ml model validate DIRECTORY`; it lists each problem with file and line",
                ),
                (
                    "a deployment that has traffic is to be deleted",
                    "move the traffic first, or use `ml online-deployment delete --force`",
                ),
                ("a field that cannot change is to be changed", "create another resource"),
            ),
        ),
        Explanation(
            "Unsupported",
            "The option, field or command exists in Azure ML, but cannot be honoured here. It is refused instead of "
            "being ignored.",
            (
                ("it has no meaning on machines of your own", "leave it out, or use what the hint names"),
                ("a part is not installed", "run `make install` in a clone of this repository"),
            ),
        ),
        Explanation(
            "HttpsRequired",
            "The request came without TLS. The port takes HTTPS alone, and the connection was ended. What the request "
            "held, also a key or a token, crossed the network in clear.",
            (
                (
                    "the address begins with `http://`",
                    "write `https://`; `ml server env` lets clients trust the server",
                ),
                ("a proxy in front forwards plain HTTP", "let it forward with TLS, or pass connections through"),
                ("a gRPC client with an insecure channel", "give the client TLS (docs/grpc.md)"),
                (
                    "a key crossed a network that others can read",
                    "run `ml online-endpoint regenerate-keys -n ENDPOINT`",
                ),
            ),
        ),
        Explanation(
            "AuthenticationFailed",
            "The request has no credential, or one that is not valid here. At a scoring address that is an endpoint's "
            "key or token, elsewhere the control plane's token.",
            (
                (
                    "scoring: the key belongs to another endpoint, or was regenerated",
                    "read the keys again: `ml online-endpoint get-credentials -n NAME`",
                ),
                (
                    "scoring: the token has expired",
                    "get another one: `ml online-endpoint get-credentials -n NAME`",
                ),
                (
                    "scoring: the header is missing or misspelt",
                    "send `Authorization: Bearer KEY`",
                ),
                (
                    "control plane on this machine: ML_TOKEN is set to something else",
                    "unset ML_TOKEN; the token of ML_HOME is used then",
                ),
                ("remote control plane", "set ML_TOKEN to the token that the server's operator gave you"),
            ),
        ),
        Explanation(
            "AuthorizationFailed",
            "The credential is valid, but does not allow this.",
            (
                ("a signed URL has expired", "start the upload or download again"),
                (
                    "the cluster does not let the control plane do it",
                    "give its service account the rights in docs/kubernetes.md",
                ),
            ),
        ),
        Explanation(
            "ResourceNotFound",
            "There is no resource with this name or address.",
            (
                (
                    "the name is misspelt, or the resource was deleted",
                    "list what exists, for example `ml online-endpoint list`",
                ),
                (
                    "the command looks in another workspace",
                    "check `-g`, `-w`, `--subscription` and `ml configure --list-defaults`",
                ),
                (
                    "scoring: the address does not begin with /endpoints/ENDPOINT/",
                    "use the address of `ml online-endpoint show -n NAME --query scoring_uri`",
                ),
                (
                    "gRPC: no endpoint is named",
                    "send the metadata `amphitrite-endpoint` with the endpoint's name",
                ),
            ),
        ),
        Explanation(
            "MethodNotAllowed",
            "The address exists, but not with this HTTP method.",
            (("a request was written by hand", "use one of the methods in the answer's header `Allow`"),),
        ),
        Explanation(
            "Conflict",
            "The request contradicts what exists.",
            (
                ("`create` of something that exists", "use `update`, `ml apply` or another name"),
                ("something in use is to be removed", "change or delete first what the message names"),
                (
                    "another client changed it at the same time",
                    "read it again and repeat the change",
                ),
                (
                    "a server is already running in this ML_HOME",
                    "use it, or stop it: `ml server stop`",
                ),
            ),
        ),
        Explanation(
            "PreconditionFailed",
            "The resource is not in the state that the header If-Match or If-None-Match asks for.",
            (("another client changed it since it was read", "read it again, then repeat the change"),),
        ),
        Explanation(
            "RequestTooLarge",
            "The body of the request is larger than the limit. The message says both.",
            (
                ("scoring: a large tensor", "raise ML_LIMIT_SCORING_BODY_BYTES and start the server again"),
                (
                    "scoring: a large body whose length is not announced",
                    "send the header `content-length`, or raise ML_LIMIT_SCORING_UNSIZED_BODY_BYTES",
                ),
                (
                    "scoring: a large body of a deployment that serves sequences",
                    "name the sequence in the header `amphitrite-sequence`",
                ),
                ("a large document", "raise ML_LIMIT_JSON_BODY_BYTES, or split the document"),
                ("a large model file", "raise ML_LIMIT_FILE_BYTES"),
            ),
        ),
        Explanation(
            "LimitExceeded",
            "Something other than a body is larger than its limit: a document, a path, a number of files.",
            (
                ("the limit of a file or path", "follow the hint: it says what to make smaller"),
                ("a limit that can be raised", "docs/settings.md lists them with their variables"),
            ),
        ),
        Explanation(
            "DamagedContent",
            "A stored file is missing, or its SHA-256 is not the one that it was stored under. It is not served.",
            (
                ("the disk or the file system is failing", "check the disk; then repair as below"),
                (
                    "something wrote into ML_HOME or into the model store",
                    "find what it was; `ml server check` lists all that is damaged",
                ),
                (
                    "to repair it",
                    "run `ml model create` again with the same files: an upload replaces the damaged file",
                ),
            ),
        ),
        Explanation(
            "InternalServerError",
            "A failure that nobody foresaw. It is a defect of the product, or of what it runs on.",
            (
                (
                    "on this machine",
                    "read `ml server logs --since 10m`; the request id in the message leads to the line",
                ),
                ("in a cluster", "read `kubectl logs deployment/amphitrite-controlplane`"),
                ("in `ml` itself", "repeat the command with `--debug` to see the traceback"),
            ),
        ),
        Explanation(
            "RuntimeUnavailable",
            "The control plane or a part of it cannot work: Envoy, Triton, the database or the object store.",
            (
                ("a program or library is missing", "follow the hint; `make install` brings what is needed"),
                (
                    "a part did not start in time, or has ended",
                    "read `ml server logs`, then start again",
                ),
                ("the database or the object store does not answer", "check its address and its state"),
            ),
        ),
    ),
)
