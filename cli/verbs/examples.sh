# The examples in the help of the verbs: a session in examples/single-model that works from top to
# bottom, and whose every line a test runs. Above each command stands what it does. A verb needs at
# least one example; put it where the session has what it needs. Lines: at most 76 columns.

# Start the control plane and Envoy in the background.
ml server start -d

# Show whether the server runs, and its addresses.
ml server status -o table

# Let Azure's SDK, tritonclient and curl in this shell find and trust it.
eval "$(ml server env)"

# Print the same as JSON.
ml server env --shell json

# Check whether Triton would load a model repository, before an upload.
ml model validate models

# Register the model in a document: upload its files as a new version.
ml model create -f model.yml

# Register a directory without a document; the version is counted.
ml model create -n pets -p models -t triton_model --tags team=vision

# List the newest version of each model.
ml model list -o table

# List all versions of one model.
ml model list -n pets -o table

# Show the newest version.
ml model show -n pets -l latest

# Mark a version and describe it.
ml model update -n pets -v 1 --stage Production --set description=Cats

# Download the files of a version to downloads/pets.
ml model download -n pets -v 1 -p downloads

# Hide a version from lists.
ml model archive -n pets -v 1

# Show it in lists again.
ml model restore -n pets -v 1

# Register an image with the routes of its server.
ml environment create -f environment.yml

# Register the next version, with another image.
ml environment create -n triton -i nvcr.io/nvidia/tritonserver:25.01-py3

# List the versions of an environment.
ml environment list -n triton -o table

# Show a version.
ml environment show -n triton -v 1

# Change the description of the newest version.
ml environment update -n triton -l latest --set description=newer

# Hide an environment from lists.
ml environment archive -n triton

# Show it in lists again.
ml environment restore -n triton

# Create the endpoint in a document.
ml online-endpoint create -f endpoint.yml

# Create one without a document, for clients with tokens.
ml online-endpoint create -n tokens --auth-mode aml_token

# Deploy a model and wait until it is ready.
ml online-deployment create -f blue-deployment.yml

# Deploy it beside blue on one instance, and send it all traffic.
ml online-deployment create -f green-deployment.yml --all-traffic \
    --set instance_count=1

# List the deployments of an endpoint.
ml online-deployment list -e pictures -o table

# Show a deployment: its state, and why it failed.
ml online-deployment show -n blue -e pictures

# Print the state alone, for a script.
ml online-deployment show -n blue -e pictures \
    --query provisioning_state -o tsv

# Wait until its last change has succeeded or failed.
ml online-deployment wait -n green -e pictures

# Send nine of ten requests to blue.
ml online-endpoint update -n pictures --traffic "blue=90 green=10"

# Copy a tenth of the requests to green, whose answers are dropped.
ml online-endpoint update -n pictures --traffic "blue=100" \
    --mirror-traffic "green=10" --reason "a look at green"

# Show each change of the traffic: when, by whom, and why.
ml online-endpoint traffic history -n pictures -o table

# Bring back the traffic from before the last change.
ml online-endpoint traffic undo -n pictures --reason "green is slow"

# Bring back the traffic of a revision in the history.
ml online-endpoint traffic restore -n pictures --revision 3

# Move the traffic to green step by step, and back if it is worse than blue.
ml online-endpoint rollout start -n pictures --to green --compare-with blue

# Show the newest rollout: its step and its evidence. -w shows it until it ends.
ml online-endpoint rollout status -n pictures

# List the last rollouts of an endpoint.
ml online-endpoint rollout list -n pictures -o table

# Stay at this step for now.
ml online-endpoint rollout pause -n pictures --reason "a look first"

# Go on after a pause.
ml online-endpoint rollout resume -n pictures

# Go to the next step now, whatever the evidence says.
ml online-endpoint rollout promote -n pictures

# End the rollout, and bring back the traffic from before.
ml online-endpoint rollout abort -n pictures --reason "a customer complains"

# List all endpoints.
ml online-endpoint list -o table

# Print the scoring address alone, for a script.
ml online-endpoint show -n pictures --query scoring_uri -o tsv

# Wait until it has been created, when --no-wait was used.
ml online-endpoint wait -n pictures --created

# Keep the key in a variable.
key=$(ml online-endpoint get-credentials -n pictures \
    --query primaryKey -o tsv)

# Send a request in JSON and print the answer as it is.
ml online-endpoint invoke -n pictures -r request.json -o tsv

# Ask one deployment, whatever the traffic.
ml online-endpoint invoke -n pictures -r request.json -d green

# Replace the secondary key; clients with the primary one go on.
ml online-endpoint regenerate-keys -n pictures --key-type secondary

# Show requests, errors and latencies of the last hour.
ml online-endpoint metrics -n pictures -o table

# Show one row for each five minutes.
ml online-endpoint metrics -n pictures -m RequestsPerMinute --interval PT5M

# Change one field; new instances are ready before old ones stop.
ml online-deployment update -n green -e pictures \
    --set request_settings.request_timeout_ms=4000

# Show the last documents of a deployment, and which fields changed.
ml online-deployment history -n green -e pictures -o table

# Show what has changed the number of instances, and why.
ml online-deployment scale-history -n green -e pictures -o table

# Bring back the model and the settings from before.
ml online-deployment rollback -n green -e pictures

# End its instances, for instance to free a GPU; requests get 503.
ml online-deployment pause -n green -e pictures --reason "GPU needed"

# Start them again; requests wait until the first is ready.
ml online-deployment resume -n green -e pictures

# Scale a deployment between one and three instances.
ml monitor autoscale create -n pictures-blue --resource pictures/blue \
    --min-count 1 --max-count 3 --count 1

# Add two instances while the processors are busy.
ml monitor autoscale rule create --autoscale-name pictures-blue \
    --condition "CpuUtilizationPercentage > 70 avg 5m" --scale out 2

# List the rules with their numbers.
ml monitor autoscale rule list --autoscale-name pictures-blue -o table

# Keep one instance on Saturdays and Sundays.
ml monitor autoscale profile create --autoscale-name pictures-blue \
    -n weekend --count 1 --recurrence week sat sun \
    --timezone "W. Europe Standard Time"

# Give the weekend the rules of the default profile.
ml monitor autoscale rule copy --autoscale-name pictures-blue \
    --dest-schedule weekend --index "*"

# Delete the first of them.
ml monitor autoscale rule delete --autoscale-name pictures-blue \
    --profile-name weekend --index 0

# Show the limits of the weekend.
ml monitor autoscale profile show --autoscale-name pictures-blue \
    -n weekend --query capacity

# List all profiles.
ml monitor autoscale profile list --autoscale-name pictures-blue -o table

# Delete the weekend.
ml monitor autoscale profile delete --autoscale-name pictures-blue \
    -n weekend

# Find the name of a time zone.
ml monitor autoscale profile list-timezones -q europe -o table

# Show what the setting comes to now, and why.
ml monitor autoscale show -n pictures-blue --query status

# List all settings.
ml monitor autoscale list -o table

# Switch it off; the number of instances stays.
ml monitor autoscale update -n pictures-blue --enabled false -o none

# Delete it.
ml monitor autoscale delete -n pictures-blue

# Print the log of the newest instance.
ml online-deployment get-logs -n blue -e pictures

# Print the last ten minutes of all instances, and go on with new lines.
ml online-deployment get-logs -n blue -e pictures --all-instances \
    --since 10m -f

# Show what ml apply would change.
ml diff -f model.yml -f endpoint.yml

# Create or update the resources of many documents.
ml apply -f endpoint.yml -f blue-deployment.yml

# Create or update those of a directory.
ml apply -f . --dry-run

# Delete a deployment; the others take over its traffic before it stops.
ml online-deployment delete -n green -e pictures -y --force

# Delete an endpoint and all its deployments.
ml online-endpoint delete -n tokens --yes

# Delete it if it is there, for a script.
ml online-endpoint delete -n tokens --yes --ignore-not-found

# Delete a version of a model that no deployment uses.
ml model delete -n pets -v 1 --yes

# Delete all versions of an environment.
ml environment delete -n triton --all-versions --yes

# Attach a namespace of a cluster.
ml compute attach -t kubernetes -n k8s --namespace models \
    --kubeconfig kubeconfig.yml

# List this machine and the attached clusters.
ml compute list -o table

# Show a cluster, its nodes and its free GPUs.
ml compute show -n k8s

# Add or replace instance types.
ml compute update -n k8s -f instance-types.yml

# List the nodes with their free resources.
ml compute list-nodes -n k8s -o table

# List the instance types that deployments can name.
ml compute list-sizes -n k8s -o table

# Detach a cluster that no endpoint uses.
ml compute detach -n k8s -y

# Show the workspace of this server.
ml workspace show -o table

# List all workspaces: there is one.
ml workspace list --query "[].name" -o tsv

# Set names for all later commands, as Azure's scripts do.
ml configure --defaults group=local workspace=local

# Print them.
ml configure --list-defaults -o table

# Show the default subscription.
ml account show

# Set it.
ml account set -s local

# Get a token for the REST API, as Azure's scripts for curl do.
ml account get-access-token --query accessToken -o tsv

# Show the resource group and its location.
ml group show --query location -o tsv

# List all resource groups: there is one.
ml group list -o table

# Set a default by the name that az config gives it.
ml config set defaults.workspace=local

# Print it.
ml config get defaults.workspace --query value -o tsv

# Remove it.
ml config unset defaults.workspace

# Explain the code at the end of an error.
ml explain NoTraffic

# List all codes with an HTTP status.
ml explain 404

# Complete commands and options in this shell; put it into ~/.bashrc.
eval "$(ml completion bash)"

# Print the version.
ml version

# Print the last lines of the server's logs.
ml server logs -l 20

# Print those of the last hour, and go on with new lines.
ml server logs --since 1h -f

# Show what models, uploads, logs and the database take.
ml server df

# Show what could be deleted.
ml server prune --dry-run

# Delete it.
ml server prune

# Save database, model files, credentials and certificates.
ml server backup amphitrite-backup.tar

# Read all that the server keeps, and say what is damaged.
ml server check

# Restore a backup into another, empty home.
ML_HOME=~/restored ml server restore amphitrite-backup.tar

# Stop the control plane alone; the models go on answering.
ml server stop --keep-serving

# Start it again; what still serves is taken over.
ml server start -d

# Stop everything.
ml server stop

# Copy the state of a stopped server into another database.
ml server migrate --from "sqlite:///$ML_HOME/amphitrite.db" \
    --to "$NEW_DATABASE"
