"""The server process on this machine: start, stop, logs, and the environment variables of its
clients.

It knows processes and files below ML_HOME. It must not know resources.
"""
