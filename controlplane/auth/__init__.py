"""Credentials, certificates, tokens, signatures and fetch grants, and their renewal.

Decides what authorizes whom. It must not know routes.
"""
