"""Moving the state of a control plane: migrate, backup, restore.

Decides what belongs to the state. It works only while no control plane uses the database, except
for a backup. Must not know HTTP or runtimes.
"""
