"""The check of everything that a control plane keeps, for ``ml server check``.

Decides what belongs to it besides the store. Must not know how damage came about.
"""
