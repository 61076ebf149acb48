"""Reports from proxies: liveness, metrics by minute, and uses of keys.

Decides how long reports are kept. Every control plane that shares the database reads what the
others received. Must not know endpoints' documents.
"""
