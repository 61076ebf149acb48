"""Codes of deployments and other changes that fail after they were accepted.

Decides their explanations. Must not know where they are raised. The codes are Azure ML's where it
has one.
"""

from __future__ import annotations

from amphitrite.schemas.explanations.explanation import Explanation, Section

_LOGS = "ml online-deployment get-logs -n DEPLOYMENT -e ENDPOINT"

FAILED_DEPLOYMENTS = Section(
    "Failed deployments",
    "A change was accepted, but its instances do not become ready. What served before goes on serving. "
    "`ml online-deployment show` and the operation report the code.",
    (
        Explanation(
            "ResourceNotReady",
            "An instance does not become ready, and never has been since the change.",
            (
                (
                    "the model cannot be loaded, or its Python code fails",
                    f"read the reason in the message, then `{_LOGS}`; correct the model and register a new version",
                ),
                (
                    "loading takes longer than the readiness probe allows",
                    "raise `readiness_probe.initial_delay` or `failure_threshold`",
                ),
                (
                    "the files could not be fetched (Kubernetes)",
                    f"`{_LOGS} -c storage-initializer`",
                ),
                (
                    "traffic names a deployment that is not ready",
                    "correct the deployment; the previous traffic stays in force",
                ),
                ("`wait` has given up before the change ended", "wait longer: `--timeout SECONDS`"),
            ),
        ),
        Explanation(
            "DeploymentCrashLoopBackOff",
            "An instance of a deployment that has served before ends again and again.",
            (
                (
                    "the model ends its process: a defect, or too little memory",
                    f"`{_LOGS} --previous` shows the attempt before; correct the model or use another instance type",
                ),
                ("a certain request makes it end", "look at the last lines before the end"),
            ),
        ),
        Explanation(
            "KubernetesCrashLoopBackOff",
            "The container of a pod ends again and again.",
            (
                (
                    "the model or its container fails",
                    f"read the log's end in the message; `{_LOGS} --previous` shows all of it",
                ),
            ),
        ),
        Explanation(
            "OutOfQuota",
            "There is no room for the instances. Nothing was made if the figures showed it beforehand.",
            (
                (
                    "the nodes have too few free GPUs, CPUs or memory",
                    "free instances, add nodes or use a smaller instance type; `ml compute show -n COMPUTE` has the "
                    "figures",
                ),
                (
                    "the update needs room for the old and the new instances",
                    "set the property `amphitrite.capacity_policy` to `wait` or `drain-first`",
                ),
                ("a ResourceQuota of the namespace", "request a larger one"),
            ),
        ),
        Explanation(
            "PodUnschedulable",
            "No node accepts the pod.",
            (
                ("too little of a resource", "free it or add nodes"),
                (
                    "selector, taints or affinity exclude every node",
                    "compare `node_selector` and `tolerations` of the instance type with `ml compute list-nodes`",
                ),
                ("the volume of the model cache is missing", "check ML_MODEL_CACHE"),
            ),
        ),
        Explanation(
            "PodOutOfMemory",
            "A container was killed because it used more memory than its limit.",
            (
                ("the model needs more", "use an instance type with more memory"),
                ("too many copies of it", "lower `instance_group.count` in config.pbtxt"),
            ),
        ),
        Explanation(
            "ImagePullLoopBackOff",
            "The nodes cannot pull an image.",
            (
                ("name or tag are wrong", "correct `environment.image`, ML_TRITON_IMAGE or ML_FETCHER_IMAGE"),
                ("the registry needs credentials", "set `global.imagePullSecrets` of the chart"),
                ("the nodes cannot reach the registry", "use a mirror: `global.imageRegistry` of the chart"),
            ),
        ),
        Explanation(
            "InvalidDeploymentSpec",
            "The cluster refuses the pod, or no instance can have these resources.",
            (
                ("a policy or an admission webhook", "read the cluster's answer in the message and comply with it"),
                ("a request above its limit", "correct the resources of the instance type or deployment"),
            ),
        ),
        Explanation(
            "NamespaceNotFound",
            "The namespace of the compute does not exist.",
            (("it was deleted, or misspelt", "create it, or attach the compute with another `--namespace`"),),
        ),
        Explanation(
            "KubernetesUnaccessible",
            "The cluster does not answer, or refuses the request. Running instances go on serving.",
            (
                ("its address or certificate is wrong", "attach the compute again with a working kubeconfig"),
                ("the token has expired or lacks rights", "renew it; docs/kubernetes.md lists the rights"),
                ("the network is down", "wait: the control plane tries again"),
            ),
        ),
        Explanation(
            "RoutingRejected",
            "A proxy refused the new routes. The routes before stay in force.",
            (("Envoy does not accept a value", "read its words in the message and change that field"),),
        ),
        Explanation(
            "OperationCanceled",
            "A later change or a deletion has replaced this one before its outcome was known.",
            (("somebody changed or deleted the resource meanwhile", "look at what is wanted now: `show`"),),
        ),
    ),
)
