"""The path of the workspace, and the rule that there is only one.

Decides which workspace paths are valid and the names of its datastore. Must not know what the
workspace contains.
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


def _require_workspace(subscription: str, resource_group: str, workspace: str, here: Here) -> None:
    requested = workspace_id(subscription, resource_group, workspace)
    if key(requested) != key(here.workspace):
        raise Error(
            "ResourceNotFound",
            f"the workspace {subscription}/{resource_group}/{workspace} does not exist; "
            f"the workspace of this server is {here.workspace.split('/')[2]}/{here.settings.resource_group}/"
            f"{here.settings.workspace} (subscription/resource group/workspace)",
            target=requested,
            hint="leave out -g, -w and --subscription; `ml configure --list-defaults` shows names that were set",
        )


#: For each router of the workspace: other workspaces are answered 404.
IN_WORKSPACE = [Depends(_require_workspace)]
