"""Whether a new deployment is as good as it should be, from what is counted of its requests.

Decides verdicts and their reasons. Pure: counts come in, a verdict comes out. Must not know who
counts, who moves the traffic, or where anything is stored.
"""
