"""How traffic moves to a new deployment step by step, and whether that one is as good as it should
be, from what is counted of its requests.

Decides steps, verdicts and their reasons. Pure: counts come in, a rollout comes out. Must not know
who counts, who stores the traffic, or where anything is stored.
"""
