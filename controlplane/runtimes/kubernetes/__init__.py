"""Instances as pods of a Kubernetes cluster.

Decides nothing by itself; the modules below are in three groups. Pure, from what is wanted to objects: ``names``,
``model_facts``, ``pod_resources``, ``pod_template``, ``manifests``. Pure, from objects to what is there: ``exits``,
``faults``, ``pods``. And what talks to the API server: ``client``, ``watching``, ``objects``, ``runtime``.
Only ``client`` imports the official client library.
"""
