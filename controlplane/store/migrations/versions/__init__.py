"""The revisions of the database schema, in order. A released revision is never edited."""
