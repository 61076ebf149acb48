"""The loop that makes what is there like what is wanted, and regular maintenance.

It carries plans out. It decides none.
"""
