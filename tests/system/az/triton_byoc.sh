# The public script of Azure ML's Triton in a container of one's own: the same commands with the same options in the same
# order. Other than there, nothing is installed, and the control plane is told that the image is Triton
# (ML_LOCAL_TRITON_IMAGES).
set -e

export ENDPOINT_NAME=endpt-moe-$RANDOM
export ACR_NAME=$(az ml workspace show --query container_registry -o tsv | cut -d'/' -f9-)

export PARENT_PATH="endpoints/online/custom-container/triton/single-model"
export ASSET_PATH="endpoints/online/triton/single-model"
export BASE_PATH="$PARENT_PATH/triton_context"
rm -rf $BASE_PATH && mkdir -p $BASE_PATH/models
cp -r $ASSET_PATH/models $BASE_PATH
cp $PARENT_PATH/triton-cc-deployment.yml $BASE_PATH/deployment.yaml
cp $PARENT_PATH/triton-cc-endpoint.yml $BASE_PATH/endpoint.yaml
sed -i "s/{{acr_name}}/$ACR_NAME/g;\
        s/{{ENDPOINT_NAME}}/$ENDPOINT_NAME/g;" $BASE_PATH/deployment.yaml
sed -i "s/{{ENDPOINT_NAME}}/$ENDPOINT_NAME/g;" $BASE_PATH/endpoint.yaml

az acr login -n $ACR_NAME

az acr build -t azureml-examples/triton-cc:latest -r $ACR_NAME -f $PARENT_PATH/triton-cc.dockerfile $BASE_PATH

az ml online-endpoint create -f $BASE_PATH/endpoint.yaml

az ml online-deployment create --endpoint-name $ENDPOINT_NAME -f $BASE_PATH/deployment.yaml --all-traffic

deploy_status=`az ml online-deployment show --name triton-cc-deployment --endpoint $ENDPOINT_NAME --query "provisioning_state" -o tsv`
echo $deploy_status
if [[ $deploy_status == "Succeeded" ]]
then
  echo "Deployment completed successfully"
else
  echo "Deployment failed"
  exit 1
fi

echo "Getting access key..."
KEY=$(az ml online-endpoint get-credentials -n $ENDPOINT_NAME --query primaryKey -o tsv)

echo "Getting scoring url..."
SCORING_URL=$(az ml online-endpoint show -n $ENDPOINT_NAME --query scoring_uri -o tsv)
echo "Scoring url is $SCORING_URL"

python endpoints/online/triton/single-model/triton_densenet_scoring.py --base_url $SCORING_URL --token $KEY

az ml online-endpoint delete -y -n $ENDPOINT_NAME
