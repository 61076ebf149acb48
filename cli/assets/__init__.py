"""Files of models and environments: reading, validation, upload, registration, download.

Decides how assets are sent and registered. Must not know endpoints or deployments.
"""
