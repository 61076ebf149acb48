"""Files of models, environments and code: collected, judged, uploaded, registered, downloaded.

It knows the asset routes of the REST API.
"""
