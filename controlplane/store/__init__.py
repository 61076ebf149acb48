"""The state of the control plane.

Decides what is kept, and that a change is kept as a whole or not at all. Must not know HTTP,
runtimes or plans.

The folders: ``sql`` (databases), ``migrations``, ``state`` (endpoints, deployments, operations),
``assets`` (models, environments, code), ``content`` (their bytes) and ``reports`` (what proxies
report).
"""
