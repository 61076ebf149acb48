"""The check of what the store keeps: the database, and models' files.

Decides what counts as damaged. Must not know how damage came about, or the files of a home.
"""
