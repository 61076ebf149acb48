"""The API server of a cluster: requests, watches, paths, permissions.

Decides how it is reached and which errors it causes. It knows JSON objects and must not know
workloads.
"""
