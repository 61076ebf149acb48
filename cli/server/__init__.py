"""The server process on this machine: start, stop, logs, environment variables of clients.

Decides how processes are started and stopped. Must not know resources.
"""
