"""Autoscale settings, as ``az monitor autoscale`` shows and writes them.

Decides requests, the short notations of rules and schedules, and outputs. Must not know options.
"""
