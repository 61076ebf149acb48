"""The control plane as a process of this machine, and the environment that its clients need.

It knows pids and files below ML_HOME.
"""
