"""Instances as pods of a Kubernetes cluster.

The folders: ``client`` (the API server), ``workloads`` (objects to write) and ``pods`` (objects
that were read). Decides how the runtime's protocol maps to Kubernetes objects. It must not know
plans, routing or the store.
"""
