"""The files of a model repository, and findings.

Decides how files are read and how a finding is written. It must not know any rule.
"""
