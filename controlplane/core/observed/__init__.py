"""What runs: instances, proxies, and the status shown to users.

Values only. Must not decide what to do.
"""
