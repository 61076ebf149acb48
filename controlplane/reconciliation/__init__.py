"""The loop that brings what runs in line with what users want, and periodic maintenance.

Decides the order of steps. Plans are made in ``core.planning``; it must not know how.
"""
