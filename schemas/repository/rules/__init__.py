"""The rules by which Triton accepts a model, one module for each part of its configuration.

They decide the findings. ``repository_check`` runs them all. They must not know where files are
stored.
"""
