"""How many instances a deployment should have, from what its proxies count.

Decides counts and their reasons. Pure: a policy, samples and the time come in, a recommendation
comes out. Must not know who samples, who starts instances, or where anything is stored.
"""
