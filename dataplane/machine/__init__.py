"""What a process needs of the machine below it: files, processes, ports, control groups, logs.

It knows neither tables nor proxies.
"""
