"""Which of several control planes leads, and what the leader does.

The rules are pure; a Lease of Kubernetes or a lock of the database confirms them.
"""
