# The public script of Azure ML's no-code deployment of Triton models: the same commands with the same options in the same
# order. Other than there, nothing is installed, and the client has no picture to fetch.
set -e

BASE_PATH=endpoints/online/triton/single-model

export ENDPOINT_NAME=triton-single-endpt-$RANDOM

az ml online-endpoint create -n $ENDPOINT_NAME -f $BASE_PATH/create-managed-endpoint.yaml

az ml online-deployment create --name blue --endpoint $ENDPOINT_NAME -f $BASE_PATH/create-managed-deployment.yaml --all-traffic

az ml online-endpoint show -n $ENDPOINT_NAME

endpoint_status=`az ml online-endpoint show --name $ENDPOINT_NAME --query "provisioning_state" -o tsv`
echo $endpoint_status
if [[ $endpoint_status == "Succeeded" ]]
then
  echo "Endpoint created successfully"
else
  echo "Endpoint creation failed"
  exit 1
fi

deploy_status=`az ml online-deployment show --name blue --endpoint $ENDPOINT_NAME --query "provisioning_state" -o tsv`
echo $deploy_status
if [[ $deploy_status == "Succeeded" ]]
then
  echo "Deployment completed successfully"
else
  echo "Deployment failed"
  exit 1
fi

scoring_uri=$(az ml online-endpoint show -n $ENDPOINT_NAME --query scoring_uri -o tsv)
scoring_uri=${scoring_uri%/*}

auth_token=$(az ml online-endpoint get-credentials -n $ENDPOINT_NAME --query accessToken -o tsv)

python $BASE_PATH/triton_densenet_scoring.py --base_url=$scoring_uri --token=$auth_token

az ml online-endpoint delete -n $ENDPOINT_NAME --yes
