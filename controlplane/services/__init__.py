"""What routes call: admission, references, containers, defaults, checks, removal.

Decides what becomes of a user's document before it is stored. It knows no HTTP.
"""
