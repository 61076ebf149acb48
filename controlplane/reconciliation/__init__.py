"""The loop that brings what runs in line with what users want, and periodic maintenance.

Decides the order of steps. Must not know how plans are made (``core.planning``).
"""
