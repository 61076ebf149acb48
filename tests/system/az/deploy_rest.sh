# The public script of Azure ML's REST API: the same questions to `az`, and the same requests with curl, each waited for at
# the address in the answer. Other than there, the model is Triton's and comes by `az ml`, and jq is a function.
set -e

jq() { python -c 'import json, sys; value = json.load(sys.stdin)
for name in sys.argv[1].strip(".").split("."): value = value[name]
print(value)' "$2"; }

SUBSCRIPTION_ID=$(az account show --query id | tr -d '\r"')
LOCATION=$(az group show --query location | tr -d '\r"')
RESOURCE_GROUP=$(az group show --query name | tr -d '\r"')
WORKSPACE=$(az config get defaults.workspace --query value -o tsv)
TOKEN=$(az account get-access-token --query accessToken -o tsv)
API_VERSION="2021-10-01"
ENDPOINT_NAME=endpt-$RANDOM
BASE=$API_URL/subscriptions/$SUBSCRIPTION_ID/resourceGroups/$RESOURCE_GROUP
BASE=$BASE/providers/Microsoft.MachineLearningServices/workspaces/$WORKSPACE

wait_for_completion () {
    status="unknown"
    while [[ $status != "Succeeded" && $status != "Failed" ]]
    do
        operation_result=$(curl --silent --show-error --location --request GET $1 --header "Authorization: Bearer $TOKEN")
        status=$(echo $operation_result | jq -r '.status')
    done
    echo "status: $status"
}

DATASTORE=$(curl --silent --show-error --location --request GET "$BASE/datastores/workspaceblobstore?api-version=$API_VERSION" \
--header "Authorization: Bearer $TOKEN" | jq -r '.properties.containerName')
echo "container: $DATASTORE"

az ml model create -n by-rest -v 1 -p endpoints/online/model-1/model -t triton_model -o none

response=$(curl --silent --show-error --location --request PUT "$BASE/onlineEndpoints/$ENDPOINT_NAME?api-version=$API_VERSION" \
--header "Content-Type: application/json" --header "Authorization: Bearer $TOKEN" \
--data-raw "{
    \"identity\": {\"type\": \"systemAssigned\"},
    \"properties\": {\"authMode\": \"AMLToken\"},
    \"location\": \"$LOCATION\"
}")
wait_for_completion $(echo $response | jq -r '.properties.properties.AzureAsyncOperationUri')

response=$(curl --silent --show-error --location --request PUT "$BASE/onlineEndpoints/$ENDPOINT_NAME/deployments/blue?api-version=$API_VERSION" \
--header "Content-Type: application/json" --header "Authorization: Bearer $TOKEN" \
--data-raw "{
    \"location\": \"$LOCATION\",
    \"sku\": {\"capacity\": 1, \"name\": \"default\"},
    \"properties\": {
        \"endpointComputeType\": \"Managed\",
        \"instanceType\": \"Standard_F2s_v2\",
        \"scaleSettings\": {\"scaleType\": \"Default\"},
        \"model\": \"${BASE#$API_URL}/models/by-rest/versions/1\"
    }
}")
wait_for_completion $(echo $response | jq -r '.properties.properties.AzureAsyncOperationUri')

az ml online-endpoint update -n $ENDPOINT_NAME --traffic "blue=100" -o none

response=$(curl --silent --show-error --location --request GET "$BASE/onlineEndpoints/$ENDPOINT_NAME?api-version=$API_VERSION" \
--header "Content-Type: application/json" --header "Authorization: Bearer $TOKEN")
scoringUri=$(echo $response | jq -r '.properties.scoringUri')
wait_for_completion $(echo $response | jq -r '.properties.properties.AzureAsyncOperationUri')

response=$(curl --silent --show-error -H "Content-Length: 0" --location --request POST "$BASE/onlineEndpoints/$ENDPOINT_NAME/token?api-version=$API_VERSION" \
--header "Authorization: Bearer $TOKEN")
accessToken=$(echo $response | jq -r '.accessToken')

echo "curl: $(curl --silent --show-error --location --request POST $scoringUri --header "Authorization: Bearer $accessToken" --header "Content-Type: application/json" --data @endpoints/online/model-1/sample-request.json)"

SWAGGER_URL=$(az ml online-endpoint show -n $ENDPOINT_NAME --query openapi_uri -o tsv)
echo "swagger: $(curl --silent --show-error -H "Authorization: Bearer $accessToken" $SWAGGER_URL | jq -r '.info.version')"

curl --silent --show-error --location --request POST "$BASE/onlineEndpoints/$ENDPOINT_NAME/deployments/blue/getLogs?api-version=$API_VERSION" \
--header "Authorization: Bearer $TOKEN" --header "Content-Type: application/json" --data-raw "{ \"tail\": 100 }" > rest-logs.txt

curl --silent --show-error --fail --location --request DELETE "$BASE/onlineEndpoints/$ENDPOINT_NAME?api-version=$API_VERSION" \
--header "Content-Type: application/json" --header "Authorization: Bearer $TOKEN"

SCORING_TOKEN=$(az account get-access-token --resource https://ml.azure.com --query accessToken -o tsv)
echo "scoring only: $(curl --silent --output /dev/null --write-out '%{http_code}' "$BASE" --header "Authorization: Bearer $SCORING_TOKEN")"
