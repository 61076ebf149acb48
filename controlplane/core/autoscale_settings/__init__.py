"""Azure Monitor's autoscale settings: rules and schedules by which a deployment is scaled.

Decides what a setting says, which of its profiles is in force, and the number of instances. Pure: a
setting, measured values and the time come in. Must not know who measures, who starts instances, or
where a setting is stored.
"""
