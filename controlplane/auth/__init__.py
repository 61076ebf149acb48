"""Secrets and proofs: credentials, certificates, tokens, signatures, grants, and their renewal.

Decides who is let in by what. It knows no route.
"""
