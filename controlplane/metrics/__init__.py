"""The proxies' numbers for readers: Prometheus' text, and Azure Monitor's names and queries.

Pure functions over stored counts.
"""
