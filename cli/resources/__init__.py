"""Changes and queries of endpoints, deployments and computes.

Decides the requests of each change and query. Must not print.
"""
