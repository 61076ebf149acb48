"""What the API server's refusals become, and which kubeconfigs are taken from a user."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from amphitrite.controlplane.runtimes.kubernetes.client import api_client
from amphitrite.schemas.errors import Error

PATH = "/apis/apps/v1/namespaces/ns/deployments/d"

REFUSALS: list[tuple[int, str, str, str]] = [
    (404, 'namespaces "ns" not found', "NamespaceNotFound", "no namespace ns"),
    (404, 'deployments.apps "d" not found', "ResourceNotFound", "not found"),
    (410, "too old resource version", "ResourceNotFound", "too old"),
    (409, "the object has been modified", "Conflict", "modified"),
    (401, "Unauthorized", "KubernetesUnaccessible", "rejects the credentials"),
    (403, 'pods "x" is forbidden: exceeded quota: q', "OutOfQuota", "exceeded quota: q"),
    (
        403,
        'deployments.apps "d" is forbidden: User "u" cannot patch resource "deployments" in API group "apps" in ns',
        "KubernetesUnaccessible",
        "does not let the control plane patch deployments.apps",
    ),
    (403, 'pods "x" is forbidden: violates PodSecurity', "InvalidDeploymentSpec", "violates PodSecurity"),
    (422, 'Deployment.apps "d" is invalid: spec: x', "InvalidDeploymentSpec", "is invalid"),
    (500, "etcdserver: leader changed", "KubernetesUnaccessible", "etcdserver: leader changed"),
    (503, "", "KubernetesUnaccessible", "503"),
]


@pytest.mark.parametrize(("status", "words", "code", "said"), REFUSALS, ids=[f"{r[0]}-{r[2]}" for r in REFUSALS])
def test_a_refusal_in_the_products_words(status: int, words: str, code: str, said: str) -> None:
    error = api_client.error_for(status, "reason", json.dumps({"kind": "Status", "message": words}), "PATCH", PATH)
    assert error.code == code
    assert said in error.message


def kubeconfig(user: dict[str, Any], cluster: dict[str, Any]) -> str:
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "clusters": [{"name": "k", "cluster": {"server": "https://198.51.100.1:6443", **cluster}}],
            "users": [{"name": "u", "user": user}],
        }
    )


def test_a_kubeconfig_with_everything_in_it_is_taken() -> None:
    api = api_client.from_text(kubeconfig({"token": "abc"}, {}))
    assert api_client.Cluster(api).address == "https://198.51.100.1:6443"


@pytest.mark.parametrize(
    ("user", "cluster", "said"),
    [
        ({"exec": {"command": "sh"}}, {}, "starts a program (exec)"),
        ({"auth-provider": {"name": "gcp"}}, {}, "starts a program (auth-provider)"),
        ({"tokenFile": "/etc/shadow"}, {}, "refers to a file (tokenFile)"),
        ({"client-key": "/root/key"}, {}, "refers to a file (client-key)"),
        ({"token": "abc"}, {"certificate-authority": "/ca"}, "refers to a file (certificate-authority)"),
    ],
)
def test_a_kubeconfig_that_would_use_what_is_ours_is_refused(
    user: dict[str, Any], cluster: dict[str, Any], said: str
) -> None:
    with pytest.raises(Error) as caught:
        api_client.from_text(kubeconfig(user, cluster))
    assert caught.value.code == "BadArgument"
    assert said in caught.value.message


@pytest.mark.parametrize("text", ["", "[]", "secret: [", "users: 7", "current-context: nowhere"])
def test_a_text_that_is_none_is_refused_without_telling_it(text: str) -> None:
    with pytest.raises(Error) as caught:
        api_client.from_text(text)
    assert caught.value.code == "BadArgument"
    assert "secret" not in caught.value.message
