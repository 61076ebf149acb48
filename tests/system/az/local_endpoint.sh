# The public script of Azure ML's local endpoints: the same commands with the same options in the same order. Other than
# there, the model is Triton's, and the key is sent, which a local endpoint of Azure ML's does not ask for.
set -e

export ENDPOINT_NAME=endpt-$RANDOM

az ml online-endpoint create --local -n $ENDPOINT_NAME -f endpoints/online/managed/saferollout/endpoint.yml

az ml online-deployment create --local -n blue --endpoint $ENDPOINT_NAME -f endpoints/online/managed/saferollout/blue-deployment.yml

az ml online-endpoint show -n $ENDPOINT_NAME --local

endpoint_status=`az ml online-endpoint show --local --name $ENDPOINT_NAME --query "provisioning_state" -o tsv`
deploy_status=`az ml online-deployment show --local --name blue --endpoint $ENDPOINT_NAME --query "provisioning_state" -o tsv`
echo "status: $endpoint_status $deploy_status"

echo "invoke: $(az ml online-endpoint invoke --local --name $ENDPOINT_NAME --request-file <(cat endpoints/online/model-1/sample-request.json))"
echo "stdin: $(az ml online-endpoint invoke --local --name $ENDPOINT_NAME -r - < endpoints/online/model-1/sample-request.json)"

SCORING_URI=$(az ml online-endpoint show --local -n $ENDPOINT_NAME -o tsv --query scoring_uri)
KEY=$(az ml online-endpoint get-credentials -n $ENDPOINT_NAME -o tsv --query primaryKey)
echo "curl: $(curl --silent --show-error --request POST "$SCORING_URI" --header "Authorization: Bearer $KEY" --header 'Content-Type: application/json' --data @endpoints/online/model-1/sample-request.json)"

az ml online-deployment get-logs --local -n blue --endpoint $ENDPOINT_NAME > logs.txt

az ml online-endpoint delete --local --name $ENDPOINT_NAME --yes
