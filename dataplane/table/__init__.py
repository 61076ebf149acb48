"""The routing table: the contract between the control plane and every proxy.

Decides what a proxy gets and how that travels: JSON, text, a file, a seed. Must not
know any proxy.
"""
