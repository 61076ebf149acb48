"""One model of a repository: its directories, its versions, its backend, and where rules report.

Decides which files belong to which model and version. Single rules are in ``rules``.
"""
