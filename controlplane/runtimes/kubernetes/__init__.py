"""Instances as pods of a Kubernetes cluster.

The rooms: ``client`` (the API server), ``workloads`` (objects to write) and ``pods`` (objects that were read). Pure
functions stand between them.
"""
