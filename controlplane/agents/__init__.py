"""The last reports of the agents, and the routing tables for them.

Decides which agents are live. It must not know HTTP or the database.
"""
