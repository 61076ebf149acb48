"""Moving what a control plane keeps: migrate, backup, restore.

It works only while no control plane uses the database.
"""
