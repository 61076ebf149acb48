"""The server process on this machine: start, stop, logs, and the environment variables of its
clients.

Decides how processes are started and stopped. Must not know resources.
"""
