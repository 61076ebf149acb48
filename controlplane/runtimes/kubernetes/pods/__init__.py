"""Instances, faults and logs from pods and their events.

Decides what objects mean. It reads them and must not change them.
"""
