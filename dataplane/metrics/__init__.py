"""The numbers that a proxy reports, under Amphitrite's names.

Decides what is counted and how counters add up. Must not know any proxy's own
statistics.
"""
