"""What the control plane remembers.

The rooms: ``sql`` (databases), ``migrations``, ``state`` (endpoints, deployments, operations), ``assets`` (models,
environments, code), ``content`` (their bytes) and ``reports`` (what proxies reported).
"""
