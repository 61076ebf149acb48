"""Metrics of the proxies for readers: Prometheus' text format, and Azure Monitor's names and
queries.

Decides names and units. Pure functions of stored counters; it must not know who reads them.
"""
