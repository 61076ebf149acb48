"""The cluster's API server: requests, watches, paths, permissions.

It knows JSON objects. It knows no workload.
"""
