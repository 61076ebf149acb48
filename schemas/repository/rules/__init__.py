"""The rules by which Triton accepts a model, one module for each part of its configuration.

``repository_check`` runs them all. Rules see values only: they read no file by themselves.
"""
