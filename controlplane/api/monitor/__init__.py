"""Azure Monitor's resources: autoscale settings.

Decides their routes and replies. Must not know how a setting is evaluated.
"""
