"""What the proxies reported: liveness, counts by minute, uses of keys.

Any control plane of a database can read what any other was told.
"""
