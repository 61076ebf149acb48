"""Decides what is refused, beyond what a JSON Schema can express.

Every refusal names the field, the value and what is allowed. It must not know HTTP.
"""
