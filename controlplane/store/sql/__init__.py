"""Databases: SQLite and PostgreSQL, their tables, and what one transaction is.

It knows no resource's meaning.
"""
