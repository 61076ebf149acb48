"""The control plane as a process: start, assembly, HTTPS server, logs, shutdown.

It decides what there is one of and in which order it starts and ends. It knows no resource.
"""
