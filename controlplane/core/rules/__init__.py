"""What is refused, beyond what a JSON Schema can say.

Every refusal names the field, the value and what is allowed. It knows no HTTP.
"""
