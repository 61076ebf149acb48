"""Routes of the data plane: routing tables for agents, model files for pods.

Decides who may call them: an agent's token or a pod's grant is needed. It must not know plans.
"""
