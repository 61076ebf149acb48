"""What users want, as values: endpoints, deployments, workloads, containers and computes.

Decides defaults and identities. It must not know what runs.
"""
