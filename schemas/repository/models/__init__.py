"""One model of a repository: its directories, versions and backend, and the report of its findings.

Decides which files belong to which model and version. It must not know the rules in ``rules``.
"""
