"""Files of models and environments: reading, validation, upload, registration, download.

It knows the asset routes of the REST API. It must not know endpoints or deployments.
"""
