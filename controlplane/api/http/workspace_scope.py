"""The path of the one workspace, and that no other is answered for.

Decides which workspace paths are ours and what the workspace's datastore is called. Must not know what lives in it.
"""

from __future__ import annotations

from fastapi import Depends

from amphitrite.controlplane.api.http.dependencies import Here
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import PROVIDER, key, workspace_id

WORKSPACE = (
    f"/subscriptions/{{subscription}}/resourceGroups/{{resource_group}}/providers/{PROVIDER}/workspaces/{{workspace}}"
)
DATASTORE = "workspaceblobstore"
CONTAINER = "azureml-blobstore"


def _ours(subscription: str, resource_group: str, workspace: str, here: Here) -> None:
    asked = workspace_id(subscription, resource_group, workspace)
    if key(asked) != key(here.workspace):
        raise Error(
            "ResourceNotFound",
            f"there is no workspace {subscription}/{resource_group}/{workspace}; "
            f"this server has one: {here.workspace.split('/')[2]}/{here.settings.resource_group}/"
            f"{here.settings.workspace} (subscription/resource group/workspace)",
            target=asked,
            hint="ml server env shows what clients of this server need",
        )


#: Put on each router of the workspace: another workspace is 404.
IN_WORKSPACE = [Depends(_ours)]
