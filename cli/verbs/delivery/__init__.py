"""Verbs for what endpoints and deployments were before, and the way back.

Decides their options and output. Each adds itself to the group of its resource. Must not know the
rows of histories (``resources.histories``).
"""
