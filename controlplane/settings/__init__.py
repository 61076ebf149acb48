"""The settings of one control plane: flags, environment variables, defaults, and the paths below
ML_HOME.

Decides names, defaults and ranges. Read once at the start, then passed as values; it must not know
what they are used for.
"""
