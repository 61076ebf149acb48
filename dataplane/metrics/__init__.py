"""The numbers that a proxy reports, under Amphitrite's names.

Decides what is counted and how counters add up. It knows no proxy's own statistics.
"""
