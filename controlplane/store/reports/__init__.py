"""Reports from proxies: liveness, metrics by minute, and uses of keys.

Every control plane that shares the database reads what the others received.
"""
