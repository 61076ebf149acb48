"""Which of several control planes leads, and what the leader runs.

Decides it with pure rules; a Kubernetes Lease or a lock of the database confirms them. It must not
know plans or routes.
"""
