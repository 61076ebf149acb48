"""Azure ML's codes of failed deployments that never occur here.

Decides what stands for them, for people who know them from Azure. Must not repeat a code of ours.
"""

from __future__ import annotations

from amphitrite.schemas.explanations.explanation import Explanation, Section

_SCRIPT = "there are no scoring scripts: Triton runs the model"
_REGISTRY = "pulling an image with wrong credentials is ImagePullLoopBackOff here"
_TOKEN = "no tokens of Entra ID are needed to run a deployment"


def _never(code: str, meaning: str, why: str, instead: str) -> Explanation:
    return Explanation(code, f"{meaning} It does not occur here.", ((why, instead),))


AZURE_NAMES = Section(
    "Azure ML's other codes",
    "Azure ML reports these for failed deployments. They do not occur here; the second column names what does.",
    (
        _never(
            "ImageBuildFailure",
            "An image could not be built.",
            "the server builds no images",
            "an image that cannot be pulled is ImagePullLoopBackOff",
        ),
        _never(
            "UserScriptInitFailed",
            "`init()` of a scoring script failed.",
            _SCRIPT,
            "a model whose `initialize` fails is ResourceNotReady",
        ),
        _never(
            "UserScriptImportError",
            "A scoring script could not be imported.",
            _SCRIPT,
            "a model.py that cannot be imported is ResourceNotReady",
        ),
        _never(
            "UserScriptFunctionNotFound",
            "A scoring script lacks `init` or `run`.",
            _SCRIPT,
            "a model.py without TritonPythonModel is ResourceNotReady",
        ),
        _never(
            "ACRSecretError",
            "The secret of the container registry is missing.",
            "registries are the cluster's affair",
            _REGISTRY,
        ),
        _never(
            "ACRAuthenticationChallengeFailed",
            "The container registry could not be reached.",
            "registries are the cluster's affair",
            _REGISTRY,
        ),
        _never(
            "ACRTokenExchangeFailed",
            "The container registry gave no token.",
            "registries are the cluster's affair",
            _REGISTRY,
        ),
        _never("TokenRefreshFailed", "A token could not be renewed.", _TOKEN, "nothing stands for it"),
        _never("GetAADTokenFailed", "Entra ID gave no token.", _TOKEN, "nothing stands for it"),
        _never(
            "SecretsInjectionError",
            "Secrets could not be read into environment variables.",
            "references to key vaults are refused in the document",
            "InvalidDocument or Unsupported, before anything starts",
        ),
        _never(
            "WorkspaceManagedNetworkNotReady",
            "The managed network of the workspace does not exist yet.",
            "there is no managed network",
            "nothing stands for it",
        ),
        _never(
            "EndpointNotFound",
            "The endpoint does not exist.",
            "one code for all resources",
            "ResourceNotFound",
        ),
        _never(
            "EndpointAlreadyExists",
            "An endpoint of this name exists.",
            "one code for all resources",
            "Conflict",
        ),
        _never(
            "ScoringFeUnhealthy",
            "The inference router of the cluster is not healthy.",
            "the router is Envoy beside the control plane, or a Deployment of the chart",
            "RuntimeUnavailable; `ml server status` and the pods' readiness show its state",
        ),
        _never(
            "ValidateScoringFailed",
            "A trial request to the new deployment failed.",
            "no trial request is sent: readiness of every model decides",
            "ResourceNotReady",
        ),
        _never(
            "InferencingClientCallFailed",
            "The extension of the cluster could not be called.",
            "the cluster's API is called directly",
            "KubernetesUnaccessible",
        ),
    ),
)
