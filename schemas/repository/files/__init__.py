"""The files of a model repository, and findings about them.

Decides how files are read and how a finding is stated. It knows no rule.
"""
