"""What routes call: admission, references, containers, defaults, checks, removal.

Decides how a user's document is checked and completed before it is stored. Must not know HTTP.
"""
