"""The chart's examples rendered: as recorded, valid for every supported Kubernetes, and within the
house rules of pods.

``pytest --update-golden`` rewrites ``golden/`` and deletes what has no example.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from amphitrite.controlplane.metrics.prometheus import render

from ..kubernetes_schemas import offences
from .chart import CHART, EXAMPLES, Document, containers, documents, example, one, pods

pytestmark = pytest.mark.helm

GOLDEN = Path(__file__).parent / "golden"
#: The oldest and the newest that the chart supports: what the one knows already and the other still
#: has, those between them have as well.
SUPPORTED = ["1.30", "1.37"]
#: Kinds of others' API groups: no schema of Kubernetes' knows them.
FOREIGN = {"cert-manager.io", "gateway.networking.k8s.io", "monitoring.coreos.com"}
#: What is new with every render, or is a file of the chart's.
MASKED_ANNOTATIONS = ("amphitrite.io/renew-after", "amphitrite.io/certificate-content")
FILES = {path.read_text().rstrip("\n"): path.name for path in (CHART / "files").glob("*.[pj]*")}

each_example = pytest.mark.parametrize("name", EXAMPLES)


def masked(document: Document) -> Document:
    """Without what differs from render to render, and without whole files."""
    copy: Document = json.loads(json.dumps(document))
    annotations = copy["metadata"].get("annotations", {})
    for name in MASKED_ANNOTATIONS:
        if name in annotations:
            annotations[name] = "(generated)"
    if copy["kind"] == "Secret":
        copy["data"] = {name: "(secret)" for name in copy.get("data", {})}
    if copy["kind"] == "ConfigMap":
        data = copy.get("data", {})
        for name, text in data.items():
            file = FILES.get(text.rstrip("\n"))
            data[name] = f"(file {file})" if file else "(generated)" if name == "ca.crt" else text
    return copy


@each_example
def test_renders_are_as_recorded(name: str, request: pytest.FixtureRequest) -> None:
    text = yaml.safe_dump_all([masked(document) for document in example(name)], sort_keys=True, width=120)
    path = GOLDEN / f"{name}.yaml"
    if request.config.getoption("--update-golden"):
        path.write_text(text)
    assert path.read_text() == text


def test_every_recorded_render_has_an_example(request: pytest.FixtureRequest) -> None:
    orphans = {path for path in GOLDEN.glob("*.yaml") if path.stem not in EXAMPLES}
    if request.config.getoption("--update-golden"):
        for path in orphans:
            path.unlink()
        orphans = set()
    assert orphans == set()


@pytest.mark.parametrize("version", SUPPORTED)
@each_example
def test_objects_are_valid(name: str, version: str) -> None:
    ours = [document for document in example(name) if document["apiVersion"].split("/")[0] not in FOREIGN]
    found = {f"{document['kind']}/{document['metadata']['name']}": offences(document, version) for document in ours}
    assert {where: wrong for where, wrong in found.items() if wrong} == {}


@each_example
def test_every_image_has_a_tag_or_a_digest(name: str) -> None:
    images = {where: container["image"] for where, container in containers(example(name)).items()}
    environment = one(example(name), "Deployment", "amphitrite-controlplane")["spec"]["template"]["spec"]["containers"][
        0
    ]["env"]
    images |= {e["name"]: e["value"] for e in environment if e["name"].endswith("_IMAGE")}
    for where, image in images.items():
        reference = image.rpartition("/")[2]
        assert "@sha256:" in image or (":" in reference and not reference.endswith(":latest")), (where, image)


def references(rendered: list[Document]) -> set[str]:
    """Of every image that a render names: in containers, and in what the control plane is told."""
    found = {container["image"] for container in containers(rendered).values()}
    controlplane = containers(rendered)["Deployment/amphitrite-controlplane/controlplane"]
    return found | {e["value"] for e in controlplane["env"] if e["name"].endswith("_IMAGE")}


@each_example
def test_every_image_can_be_given_by_digest(name: str) -> None:
    """By one file of values, as ``build.sh --digests`` writes it. The tag stays."""
    images = yaml.safe_load((CHART / "values.yaml").read_text())["images"]
    digests = {image: f"sha256:{hashlib.sha256(image.encode()).hexdigest()}" for image in images}
    settings = [f"images.{image}.digest={digest}" for image, digest in digests.items()]
    before = references(documents("--values", EXAMPLES[name]))
    after = references(
        documents("--values", EXAMPLES[name], *(part for setting in settings for part in ("--set", setting)))
    )
    assert {reference.partition("@")[0] for reference in after} == {r.partition("@")[0] for r in before}
    assert all(reference.partition("@")[2] in digests.values() for reference in after), after
    assert all(":" in reference.partition("@")[0].rpartition("/")[2] for reference in after), "the tag stays"
    assert len(after) >= 4


def test_one_value_moves_every_image_to_a_mirror() -> None:
    rendered = example("air-gapped")
    environment = one(rendered, "Deployment", "amphitrite-controlplane")["spec"]["template"]["spec"]["containers"][0][
        "env"
    ]
    images = [container["image"] for container in containers(rendered).values()]
    images += [e["value"] for e in environment if e["name"].endswith("_IMAGE")]
    assert {image.partition("/")[0] for image in images} == {"registry.internal.example"}
    assert {e["value"] for e in environment if e["name"] == "ML_IMAGE_PULL_SECRETS"} == {"mirror"}
    assert all(spec["imagePullSecrets"] == [{"name": "mirror"}] for spec in pods(rendered).values())


@each_example
def test_pods_fit_the_restricted_level(name: str) -> None:
    """Kubernetes' Pod Security Standards, level `restricted`; and what they do not ask for, but we
    do."""
    for where, spec in pods(example(name)).items():
        context = spec["securityContext"]
        assert context["runAsNonRoot"] is True, where
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}, where
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec), where
        unbounded = [v["name"] for v in spec["volumes"] if "emptyDir" in v and "sizeLimit" not in v["emptyDir"]]
        assert unbounded == [], where
        kinds = {kind for volume in spec["volumes"] for kind in volume if kind != "name"}
        assert kinds <= {"configMap", "emptyDir", "persistentVolumeClaim", "projected", "secret"}, where
        assert "automountServiceAccountToken" in spec, where
    for where, container in containers(example(name)).items():
        context = container["securityContext"]
        assert context["allowPrivilegeEscalation"] is False, where
        assert context["capabilities"] == {"drop": ["ALL"]}, where
        assert context["readOnlyRootFilesystem"] is True, where
        assert not any("hostPort" in port for port in container.get("ports", ())), where
        resources = container["resources"]
        assert {"cpu", "memory"} <= set(resources["requests"]), where
        assert set(resources["limits"]) == {"memory"}, f"{where}: a bound of CPU throttles"


@each_example
def test_only_the_control_plane_and_the_clean_up_have_a_token(name: str) -> None:
    with_token = {where for where, spec in pods(example(name)).items() if spec["automountServiceAccountToken"]}
    assert with_token == {"Deployment/amphitrite-controlplane", "Job/amphitrite-clean-up"}


@each_example
def test_recommended_labels_are_on_everything(name: str) -> None:
    wanted = {
        f"app.kubernetes.io/{label}" for label in ("name", "instance", "component", "version", "part-of", "managed-by")
    }
    offences = [
        f"{d['kind']}/{d['metadata']['name']}" for d in example(name) if not wanted <= set(d["metadata"]["labels"])
    ]
    assert offences == []


@each_example
def test_selectors_choose_their_pods(name: str) -> None:
    """And nobody else's: policies, budgets and Services go by the same three labels."""
    rendered = example(name)
    templates = {
        d["metadata"]["name"]: d["spec"]["template"]["metadata"]["labels"]
        for d in rendered
        if d["kind"] in ("Deployment", "DaemonSet", "StatefulSet")
    }
    for document in rendered:
        selector: Any = None
        if document["kind"] == "Service":
            selector = document["spec"]["selector"]
        elif document["kind"] in ("NetworkPolicy", "PodDisruptionBudget"):
            spec = document["spec"]
            selector = (spec.get("podSelector") or spec["selector"])["matchLabels"]
        if selector is not None:
            chosen = [workload for workload, labels in templates.items() if selector.items() <= labels.items()]
            assert chosen == [document["metadata"]["name"]], document["kind"]


@each_example
def test_a_budget_only_where_there_is_a_second(name: str) -> None:
    rendered = example(name)
    several = {d["metadata"]["name"] for d in rendered if d["kind"] == "Deployment" and d["spec"]["replicas"] > 1}
    assert {d["metadata"]["name"] for d in rendered if d["kind"] == "PodDisruptionBudget"} == several


@each_example
def test_a_proxy_has_time_for_everything_that_ends_it(name: str) -> None:
    for where, spec in pods(example(name)).items():
        if "dataplane" not in where:
            continue
        (container,) = spec["containers"]
        flags = dict(argument.removeprefix("--").split("=", 1) for argument in container["args"])
        pause = container["lifecycle"]["preStop"]["sleep"]["seconds"]
        assert spec["terminationGracePeriodSeconds"] > pause + int(flags["linger-s"]) + int(flags["grace-s"])


def test_where_the_kinds_are_missing_nothing_of_them_is_made() -> None:
    rendered = documents("--values", EXAMPLES["daemonset-monitoring"])
    kinds = {"PodMonitor", "ServiceMonitor", "PrometheusRule"}
    assert not {d["kind"] for d in rendered} & kinds
    assert not any(d["metadata"]["name"].endswith("-dashboard") for d in rendered)
    assert kinds <= {d["kind"] for d in example("daemonset-monitoring")}


def test_rules_and_dashboard_ask_for_what_is_served() -> None:
    """A name that nobody serves gives an alert that never comes."""
    served = set(re.findall(r"# TYPE (\w+) ", render({}, (), "0")))
    rendered = example("daemonset-monitoring")
    groups = one(rendered, "PrometheusRule", "amphitrite")["spec"]["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    panels = json.loads(one(rendered, "ConfigMap", "amphitrite-dashboard")["data"]["amphitrite.json"])["panels"]
    asked = [rule["expr"] for rule in rules] + [target["expr"] for panel in panels for target in panel["targets"]]
    used = {name for text in asked for name in re.findall(r"\bamphitrite_(?!io_)\w+", text)}
    assert used, "nothing was found to check"
    assert {name.removesuffix("_bucket") for name in used} <= served
    recorded = {rule["record"] for rule in rules if "record" in rule}
    assert {name for text in asked for name in re.findall(r"\bamphitrite:[\w:]+", text)} <= recorded


def test_an_http_route_brings_trust_in_the_proxies() -> None:
    arguments = ("--values", EXAMPLES["cert-manager-gateway"], "--set", "gateway.kind=HTTPRoute")
    policy = one(documents(*arguments), "BackendTLSPolicy", "amphitrite-dataplane")
    assert policy["spec"]["validation"] == {"hostname": "scoring.example.com", "wellKnownCACertificates": "System"}
    own = documents(*arguments, "--set", "tls.dataplane.source=generated", "--set", "tls.dataplane.issuerRef.name=")
    validation = one(own, "BackendTLSPolicy", "amphitrite-dataplane")["spec"]["validation"]
    assert validation["caCertificateRefs"] == [{"group": "", "kind": "ConfigMap", "name": "amphitrite-authority"}]
    assert "ca.crt" in one(own, "ConfigMap", "amphitrite-authority")["data"]


def test_generated_certificates_verify(tmp_path: Path) -> None:
    """By Python's own rules for X.509, and for the names by which both planes are reached."""
    from cryptography import x509

    rendered = example("production")
    secrets = {d["metadata"]["name"]: d.get("data", {}) for d in rendered if d["kind"] == "Secret"}
    load = lambda secret, key: x509.load_pem_x509_certificate(base64.b64decode(secrets[secret][key]))  # noqa: E731
    authority = load("amphitrite-authority", "tls.crt")
    for component, name in (("controlplane", "localhost"), ("dataplane", "scoring.example.com")):
        leaf = load(f"amphitrite-{component}-tls", "tls.crt")
        leaf.verify_directly_issued_by(authority)
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        covered = names.get_values_for_type(x509.DNSName)
        assert {name, f"amphitrite-{component}.ml.svc"} <= set(covered)
        assert load(f"amphitrite-{component}-tls", "ca.crt") == authority
    assert secrets["amphitrite-routing-table"] == {}, "the leader alone writes it"
