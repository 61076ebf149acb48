"""Routes of how new deployments get their traffic. Azure ML has no such routes.

Decides the HTTP form of rollouts. Must not know how they go on.
"""
