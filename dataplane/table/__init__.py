"""The routing table: the contract between the control plane and every proxy.

Decides what a proxy gets and how that travels: JSON, text, a file, a seed. It knows no proxy.
"""
