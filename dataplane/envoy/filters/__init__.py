"""What Envoy does with each request and response: one module for each concern.

Decides the configuration of filters, by pure functions that return JSON values. Must not know a
table as a whole, nor a process.
"""
