# The public script of Azure ML's autoscaling: the same commands with the same options in the same order. Other than
# there, the model is Triton's, and the script looks at what has become of the settings.
set -e

export NAME=autoscale-$RANDOM
az ml online-endpoint create --name $NAME -f endpoints/online/managed/saferollout/endpoint.yml
az ml online-deployment create --name blue --endpoint $NAME -f endpoints/online/managed/saferollout/blue-deployment.yml --all-traffic

deployment=$(az ml online-deployment show -e $NAME -n blue -o tsv --query "id")
endpoint=$(az ml online-endpoint show -n $NAME -o tsv --query "properties.\"azureml.onlineendpointid\"")
SETTING=scale-$NAME-blue-$RANDOM

az monitor autoscale create --name $SETTING --resource $deployment --min-count 2 --max-count 5 --count 2
az monitor autoscale rule create --autoscale-name $SETTING --condition "CpuUtilizationPercentage > 70 avg 5m" --scale out 2
az monitor autoscale rule create --autoscale-name $SETTING --condition "CpuUtilizationPercentage < 25 avg 5m" --scale in 1
az monitor autoscale rule create --autoscale-name $SETTING --condition "RequestLatency > 70 avg 5m" --scale out 1 --resource $endpoint
az monitor autoscale profile create --name weekend-profile --autoscale-name $SETTING --min-count 2 --count 2 --max-count 2 \
  --recurrence week sat sun --timezone "Pacific Standard Time"

until [ "$(az ml online-deployment show -e $NAME -n blue -o tsv --query "status.ready_instances")" = 2 ]; do :; done
echo "instances: $(az ml online-deployment show -e $NAME -n blue -o tsv --query "instance_count")"
echo "why: $(az ml online-deployment scale-history -e $NAME -n blue -o tsv --query "[0].reason")"
echo "rules: $(az monitor autoscale rule list --autoscale-name $SETTING -o tsv --query "length(@)")"

az monitor autoscale delete -n "$SETTING"
echo "left: $(az monitor autoscale list -o tsv --query "length(@)")"
az ml online-endpoint delete --name $NAME --yes --no-wait
