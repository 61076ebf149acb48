"""The numbers that a proxy reports, by Amphitrite's names.

Decides what is counted and how counts add up. It knows no proxy's own statistics.
"""
