"""Databases: SQLite and PostgreSQL, their tables and transactions.

It must not know what the rows mean.
"""
