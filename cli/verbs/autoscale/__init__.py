"""``ml monitor``: the verbs of autoscale settings, under the names of ``az monitor``.

Decides their options and output. Must not know requests or notations (``resources.autoscale``).
"""
