"""The state of the control plane.

The folders: ``sql`` (databases), ``migrations``, ``state`` (endpoints, deployments, operations),
``assets`` (models, environments, code), ``content`` (their bytes) and ``reports`` (what proxies
report).
"""
