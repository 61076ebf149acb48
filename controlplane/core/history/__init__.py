"""What endpoints and deployments were before, and what each change changed.

Decides which changes a history shows and which document an undo brings back. Pure. Must not know
where revisions are stored or who reads them.
"""
