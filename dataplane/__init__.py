"""The data plane: the agent and its proxy, and how Triton is started.

Decides how requests reach instances. It must not know a database or the REST API for users, and it
imports ``schemas`` alone.
"""
