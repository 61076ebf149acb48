"""Routes for whoever operates this server: what its data takes, and deletion of garbage.

Decides HTTP. Must not know what is garbage.
"""
