"""Codes of the proxy at a scoring address.

Decides their explanations. Must not know how the proxy is configured. AuthenticationFailed,
ResourceNotFound, RequestTooLarge, MethodNotAllowed and InternalServerError, which the control plane
has too, are in ``refused_requests``.
"""

from __future__ import annotations

from amphitrite.schemas.explanations.explanation import Explanation, Section

_LOGS = "ml online-deployment get-logs -n DEPLOYMENT -e ENDPOINT"

SCORING_ANSWERS = Section(
    "Scoring",
    "The proxy answered a scoring request itself, or a model failed. `AuthenticationFailed` (401), `ResourceNotFound` "
    "(404), `MethodNotAllowed` (405) and `RequestTooLarge` (413), which scoring requests get too, are among the "
    "refused requests.",
    (
        Explanation(
            "NoTraffic",
            "The endpoint exists, but none of its deployments has traffic.",
            (
                (
                    "traffic was never set",
                    'run `ml online-endpoint update -n ENDPOINT --traffic "DEPLOYMENT=100"`',
                ),
                ("only one deployment is meant", "send the header `azureml-model-deployment: DEPLOYMENT`"),
            ),
        ),
        Explanation(
            "DeploymentNotFound",
            "The endpoint has no deployment with the name in the header `azureml-model-deployment`.",
            (("misspelt or deleted", "run `ml online-deployment list -e ENDPOINT`"),),
        ),
        Explanation(
            "DeploymentNotReady",
            "The chosen deployment has no instance that may be asked: it is starting, failing or being removed.",
            (
                ("it is starting", "try again after `Retry-After`; `ml online-deployment show` has the state"),
                ("it failed", f"`{_LOGS}`"),
            ),
        ),
        Explanation(
            "DeploymentPaused",
            "The chosen deployment is paused: somebody has ended its instances by `ml online-deployment pause`.",
            (
                ("it should serve again", "run `ml online-deployment resume -n DEPLOYMENT -e ENDPOINT`"),
                ("who paused it, and why", "run `ml online-deployment history -n DEPLOYMENT -e ENDPOINT`"),
                ("another deployment should serve", "set the endpoint's traffic"),
            ),
        ),
        Explanation(
            "DeploymentWaking",
            "The chosen deployment has no instance yet. Requests wait for one, and no more of them can wait.",
            (
                ("as many requests as may be held wait already", "try again after `Retry-After`"),
                ("the agent beside the proxy does not answer", "run `ml server status`; the log of the agent says why"),
            ),
        ),
        Explanation(
            "NoHealthyInstance",
            "All instances of the deployment fail their readiness probe.",
            (
                ("the model server hangs or has ended", f"`{_LOGS}`; a new instance starts by itself"),
                ("the probe is too strict", "raise `readiness_probe.timeout` or `failure_threshold`"),
            ),
        ),
        Explanation(
            "InstanceConnectionLost",
            "The connection to an instance was lost before it answered. The request may have run.",
            (
                ("the instance ended while it ran the request", f"`{_LOGS} --previous`"),
                (
                    "a model without state may run a request twice",
                    "set the property `amphitrite.retry: lost-requests`; the proxy then asks another instance",
                ),
            ),
        ),
        Explanation(
            "RequestTimeout",
            "No complete answer within the deployment's timeout, or no byte in either direction for a while.",
            (
                (
                    "the model is slower than the timeout (5 s by default)",
                    "raise `request_settings.request_timeout_ms`, at most 180,000",
                ),
                ("requests wait in the model server", "raise `instance_count`, or set a queue policy in config.pbtxt"),
                ("the client sends slowly or not at all", "check the client and the network"),
            ),
        ),
        Explanation(
            "TooManyRequests",
            "The deployment has as many requests in flight as it accepts. The message says the bound and how it comes "
            "about, and whether the request has waited for a place.",
            (
                (
                    "a short peak",
                    "try again after `Retry-After`, or set `request_settings.max_queue_wait_ms`: then a request waits "
                    "so long for a place",
                ),
                (
                    "the bound is low: 1 for each instance by default",
                    "raise `request_settings.max_concurrent_requests_per_instance` or `instance_count`",
                ),
            ),
        ),
        Explanation(
            "ModelError",
            "The model answered with a failure. Its status and reason are in the headers "
            "`ms-azureml-model-error-statuscode` and `-reason`. Below `/v2` the body is the model server's own.",
            (
                (
                    "name, shape or type of an input is wrong",
                    "compare the request with `v2/models/MODEL/config` below the scoring address",
                ),
                ("the model's code fails", f"`{_LOGS}`"),
            ),
        ),
        Explanation(
            "NoScoringModel",
            "A POST to the scoring address itself needs a deployment with one model. This one has several, or none "
            "that can be scored so.",
            (
                (
                    "the deployment serves several models",
                    "send the request to `v2/models/MODEL/infer` below the address, or set the property "
                    "`amphitrite.scoring_model`",
                ),
            ),
        ),
        Explanation(
            "BadRequest",
            "The proxy could not read the request: it breaks HTTP, or its sequence cannot be told.",
            (
                ("a client of its own making, or a broken connection", "look at what the client sends"),
                (
                    "a deployment that serves sequences, and a request with many fields or names",
                    "name the sequence in the header `amphitrite-sequence`",
                ),
                (
                    "a model that takes sequence ids as numbers, and a long text for `sequence_id`",
                    "send a number, or a text of at most 20 bytes",
                ),
            ),
        ),
        Explanation(
            "Forbidden",
            "This part of the model server's API cannot be reached from outside: repository, shared memory, trace and "
            "log settings.",
            (("a client wants to control the model server", "use `ml` instead: a new model is a new version"),),
        ),
        Explanation(
            "LengthRequired",
            "The length of the body is not known. Release 0.2.0 answers this to every such body. Later ones hold it up "
            "to a limit, and above that the answer is `RequestTooLarge`.",
            (("the client streams a large body", "send the header `content-length`"),),
        ),
        Explanation(
            "UnsupportedMediaType",
            "The deployment serves sequences, and a compressed body does not show its sequence.",
            (
                ("the client compresses", "name the sequence in the header `amphitrite-sequence`"),
                ("the same, and a model takes sequence ids as numbers", "send the body uncompressed"),
            ),
        ),
        Explanation(
            "HeadersTooLarge",
            "The headers of the request are larger than the proxy accepts.",
            (("cookies or tokens add up", "send less"),),
        ),
        Explanation(
            "NotImplemented",
            "The proxy or the deployment does not offer this: a gRPC method that does not score, or gRPC of a "
            "container that is not a Triton.",
            (("another method is meant", "use the scoring methods of inference.GRPCInferenceService (docs/grpc.md)"),),
        ),
        Explanation(
            "InvalidAnswer",
            "An instance did not answer in HTTP.",
            (("a container of your own answers something else", "check its port and scoring route"),),
        ),
        Explanation(
            "Overloaded",
            "The proxy has too little memory for more requests.",
            (("very many or very large requests at once", "send fewer at once, or add proxies"),),
        ),
        Explanation(
            "ClientClosedRequest",
            "The client went away before the answer. It stands in metrics and logs only.",
            (("the client has a shorter timeout than the deployment", "raise the client's timeout"),),
        ),
    ),
)
