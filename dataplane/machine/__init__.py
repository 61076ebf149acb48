"""What a process needs of its machine: files, processes, ports, control groups, logs.

Decides how a file is replaced and which process is meant. Must not know tables or proxies.
"""
