# The public script of Azure ML's safe rollout: the same commands with the same options in the same order. Other than
# there, the models are Triton's, and the endpoint is looked at once more at the end of each step that the test judges.
set -e

export ENDPOINT_NAME=endpt-$RANDOM

az ml online-endpoint create --name $ENDPOINT_NAME -f endpoints/online/managed/saferollout/endpoint.yml

az ml online-deployment create --name blue --endpoint $ENDPOINT_NAME -f endpoints/online/managed/saferollout/blue-deployment.yml --all-traffic

echo "blue: $(az ml online-endpoint invoke --name $ENDPOINT_NAME --request-file endpoints/online/model-1/sample-request.json)"

az ml online-deployment update --name blue --endpoint $ENDPOINT_NAME --set instance_count=2

az ml online-deployment create --name green --endpoint $ENDPOINT_NAME -f endpoints/online/managed/saferollout/green-deployment.yml

az ml online-endpoint show -n $ENDPOINT_NAME --query traffic

echo "green: $(az ml online-endpoint invoke --name $ENDPOINT_NAME --deployment green --request-file endpoints/online/model-2/sample-request.json)"

ENDPOINT_KEY=$(az ml online-endpoint get-credentials -n $ENDPOINT_NAME -o tsv --query primaryKey)

SCORING_URI=$(az ml online-endpoint show -n $ENDPOINT_NAME -o tsv --query scoring_uri)

echo "curl: $(curl --silent --show-error --request POST "$SCORING_URI" --header "Authorization: Bearer $ENDPOINT_KEY" --header 'Content-Type: application/json' --header "azureml-model-deployment: green" --data @endpoints/online/model-2/sample-request.json)"

az ml online-endpoint update --name $ENDPOINT_NAME --mirror-traffic "green=10"

az ml online-endpoint update --name $ENDPOINT_NAME --mirror-traffic "green=0"

az ml online-endpoint update --name $ENDPOINT_NAME --traffic "blue=90 green=10"
echo "split: $(az ml online-endpoint show -n $ENDPOINT_NAME --query 'traffic.[blue, green]' -o tsv | tr '\n' ' ')"

az ml online-endpoint update --name $ENDPOINT_NAME --traffic "blue=0 green=100"
echo "moved: $(az ml online-endpoint invoke --name $ENDPOINT_NAME --request-file endpoints/online/model-1/sample-request.json)"

az ml online-deployment delete --name blue --endpoint $ENDPOINT_NAME --yes --no-wait

az ml online-endpoint delete --name $ENDPOINT_NAME --yes --no-wait
