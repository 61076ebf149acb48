"""What a process needs of its machine: files, processes, ports, control groups, logs.

It knows neither tables nor proxies.
"""
