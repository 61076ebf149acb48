"""Databases: SQLite and PostgreSQL, their tables and transactions.

Decides what a transaction is, and where the two differ. Must not know what the rows mean.
"""
