"""The data plane: the agent and its proxy, and how Triton is started.

It knows routes and instances. It knows no database and no REST API, and it imports ``schemas``
alone.
"""
