"""What is there: instances, proxies, and the status that users are told.

Values only. It decides nothing about what to do.
"""
