"""What users want: endpoints, deployments, workloads, containers and computes as values.

Decides defaults and identities. It knows nothing of what is there.
"""
