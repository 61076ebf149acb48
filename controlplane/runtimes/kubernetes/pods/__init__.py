"""From pods and their events to instances, faults and logs.

It reads objects and never changes them.
"""
