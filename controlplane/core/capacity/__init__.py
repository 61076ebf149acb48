"""Whether instances fit onto a cluster's nodes, and what a rollout does where they do not.

It knows shapes and numbers. It knows no Kubernetes object.
"""
