"""Every form of a command that Azure ML's scripts and documentation use is understood.

Each line is run without a control plane: exit code 3 says that the command was understood and
wanted to talk to one.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from amphitrite.cli.main import main
from amphitrite.cli.session.rest_client import Client
from amphitrite.cli.terminal.options import Options
from amphitrite.schemas.errors import Error

UNDERSTOOD = """
online-endpoint show -n ep1
online-endpoint show --name ep1 --query provisioning_state -o tsv
online-endpoint show -n ep1 --query scoring_uri --output tsv -g rg -w ws --subscription sub
endpoint show -n ep1 --resource-group rg --workspace-name ws --only-show-errors --verbose
-g rg -w ws online-endpoint show -n ep1
online-endpoint create -n ep1
online-endpoint create --name ep1 --auth-mode aml_token
online-endpoint create -n ep1 -f endpoint.yml
online-endpoint create --file endpoint.yml --set public_network_access=enabled tags.a=b --set name=ep2 --no-wait
online-endpoint list -o table
online-endpoint update -n ep1 --traffic "blue=90 green=10"
online-endpoint update -n ep1 -r blue=100
online-endpoint update --name ep1 --traffic blue=0 green=100 --no-wait
online-endpoint update -n ep1 --mirror-traffic "green=10"
online-endpoint update -f endpoint.yml --set tags.a=b
online-endpoint delete -n ep1 --yes
online-endpoint delete -n ep1 -y --no-wait
online-endpoint get-credentials -n ep1 --query primaryKey -o tsv
online-endpoint regenerate-keys -n ep1
online-endpoint regenerate-keys -n ep1 --key-type secondary --no-wait
online-endpoint invoke -n ep1 --request-file request.json
online-endpoint invoke -n ep1 -r request.json -d blue
online-endpoint invoke -n ep1 -r request.json --deployment blue
online-endpoint invoke -n ep1 -r request.json --deployment-name blue
online-deployment create -f deployment.yml
online-deployment create --name blue --endpoint ep1 -f deployment.yml --all-traffic
online-deployment create -n blue -e ep1 --file deployment.yml --set instance_count=2 model=azureml:m:2
online-deployment create -n blue --endpoint-name ep1 -f deployment.yml --no-wait --skip-script-validation
deployment show -n blue --endpoint ep1 --query provisioning_state -o tsv
online-deployment show --name blue -e ep1
online-deployment list -e ep1
online-deployment list --endpoint-name ep1
online-deployment update -n blue --endpoint ep1 --set instance_count=2
online-deployment update -n blue -e ep1 -f deployment.yml --no-wait
online-deployment delete -n blue --endpoint ep1 --yes --no-wait
online-deployment get-logs -n blue --endpoint ep1
online-deployment get-logs -n blue -e ep1 -l 100 -c inference-server
online-deployment get-logs -n blue -e ep1 --lines 1 --container storage-initializer
online-deployment get-logs -n blue -e ep1 --instance ep1-blue-0 --follow
online-deployment get-logs -n blue -e ep1 -f --since 10m --all-instances
online-deployment get-logs -n blue -e ep1 --previous --tail 20 --json
environment create -f environment.yml
environment create --name e --image i:1 --conda-file c.yml --os-type linux --description d --tags a=b c=d --version 2
environment create --file environment.yml --set image=i:2 -v 3 --no-wait --datastore workspaceblobstore
environment show -n e -v 1
environment show --name e --label latest --query image -o tsv
environment list -o table
environment list -n e --archived-only
environment list --name e --include-archived --max-results 5
environment update -n e -v 1 --set tags.a=b
environment update --name e --label latest --remove tags.a --set description=x
environment archive -n e --version 1
environment restore -n e -l latest
online-endpoint create --local -n ep1 -f endpoint.yml
online-endpoint show -n ep1 --local
online-endpoint list --local
online-endpoint invoke --local --name ep1 --request-file request.json
online-endpoint delete --local --name ep1 --yes --no-wait
online-endpoint update -n ep1 --set identity.user_assigned_identities[0].resource_id=/x --force-string
online-endpoint update -n ep1 --set tags.a=b c=d --add identity.user_assigned_identities resource_id=/x --remove tags.b
online-endpoint update -n ep1 --set traffic={"blue":100} --remove tags 0 --no-wait
online-deployment create --local -n blue --endpoint ep1 -f deployment.yml
online-deployment show --local --name blue --endpoint ep1
online-deployment get-logs --local -n blue --endpoint ep1
online-deployment update -n blue -e ep1 --set environment_variables.A=b --add tags x --remove description
online-deployment delete -n blue --endpoint ep1 --local -y
compute attach --resource-group rg --workspace-name ws --type Kubernetes --name k8s --namespace ns --kubeconfig k.yml
compute attach -t kubernetes -n k8s --namespace ns --in-cluster --no-wait
compute attach --file compute.yml
compute show --name k8s
compute list -o table
compute update -n k8s --file types.yml
compute update -n k8s --set default_instance_type=small
compute detach -n k8s --yes --no-wait
compute list-nodes --name k8s
compute list-sizes
compute list-sizes -n k8s
model create -f model.yml
model create -n m -v 1 -p files -t triton_model
model create --name m --version 1 --path files --type custom_model --description "a model" --tags a=b c=d
model create -f model.yml --set version=2
model create -n m -p files --stage Production --datastore workspaceblobstore --no-wait
model show -n m -v 1
model show -n m --label latest
model list
model list -n m --include-archived -r 3
model list -n m --stage Production
model update -n m -v 1 --stage Production --set description=x tags.a=b --remove tags.c
model update -n m -l latest --add properties x --force-string
model download -n m -v 1
model download --name m --version 1 --download-path copies
workspace show
workspace show -n local --query container_registry -o tsv
workspace list
group show
group show -n rg --query location
group list -o table
account get-access-token --query accessToken -o tsv
account get-access-token --resource https://ml.azure.com
model list --archived-only --max-results 3
model archive -n m --version 1
model archive -n m
model restore -n m -l latest
"""

FILES = {
    "endpoint.yml": "name: ep1\nauth_mode: key\n",
    "deployment.yml": "name: d1x\nendpoint_name: ep9\nmodel: azureml:m:1\ninstance_type: Standard_DS3_v2\n",
    "environment.yml": "name: e\nimage: i:1\n",
    "c.yml": "name: c\n",
    "model.yml": "name: m\npath: files\n",
    "compute.yml": "name: k8s\ntype: kubernetes\nnamespace: ns\nkubeconfig: k.yml\n",
    "k.yml": "clusters: [{name: c}]\nusers: []\n",
    "types.yml": "instance_types: []\n",
    "request.json": "{}\n",
    "files/model.bin": "x\n",
}


def nobody(options: Options) -> Client:
    raise Error("ServerUnreachable", "no control plane")


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("line", UNDERSTOOD.strip().splitlines())
def test_understood(line: str, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import shlex

    assert main(shlex.split(line), nobody) == 3, capsys.readouterr().err
