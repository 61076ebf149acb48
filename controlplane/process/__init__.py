"""The control plane as a process: start, assembly, HTTPS server, logs, shutdown.

Decides what exists once, and in which order it starts and ends. It must not know resources.
"""
