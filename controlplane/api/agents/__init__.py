"""Routes of the data plane: routing tables for agents, model files for pods.

Only an agent's token or a pod's grant opens them.
"""
