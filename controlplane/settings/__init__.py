"""How one control plane is set up: flags, environment, defaults, and the places below ML_HOME.

Read once at the start, then passed as values.
"""
