{{/* Combinations that the schema of the values cannot judge. Each refusal says why and what to set. */}}

{{- define "amphitrite.validate" -}}
{{- $v := .Values -}}
{{- $databases := list -}}
{{- if $v.database.url -}}{{- $databases = append $databases "database.url" -}}{{- end -}}
{{- if $v.database.existingSecret.name -}}{{- $databases = append $databases "database.existingSecret.name" -}}{{- end -}}
{{- if $v.database.sqlite.enabled -}}{{- $databases = append $databases "database.sqlite.enabled" -}}{{- end -}}
{{- if $v.postgresql.enabled -}}{{- $databases = append $databases "postgresql.enabled" -}}{{- end -}}
{{- if eq (len $databases) 0 -}}
{{- fail "\n\nNo database. Set one of\n  database.existingSecret.name   a Secret whose key `url` holds postgresql+psycopg://USER:PASSWORD@HOST/DATABASE (production)\n  postgresql.enabled             a PostgreSQL of one pod in this release (trials)\n  database.sqlite.enabled        a file on a volume, with one control plane\nFiles to start from: examples/ in the chart." -}}
{{- end -}}
{{- if gt (len $databases) 1 -}}
{{- fail (printf "\n\nMore than one database: %s. Set one of them." (join ", " $databases)) -}}
{{- end -}}
{{- if and $v.database.url (not (hasPrefix "postgresql+psycopg://" $v.database.url)) -}}
{{- fail "\n\ndatabase.url must begin with postgresql+psycopg://. For a file use database.sqlite.enabled." -}}
{{- end -}}
{{- if and $v.postgresql.enabled (not $v.postgresql.acknowledgeTrial) -}}
{{- fail "\n\npostgresql.enabled starts one PostgreSQL pod: no replica, no backup, and every control plane waits while it restarts.\nThat is for trials. Set postgresql.acknowledgeTrial=true to say so, or use database.existingSecret.name." -}}
{{- end -}}
{{- if and (not $v.models.s3.bucket) (not $v.models.persistence.enabled) -}}
{{- fail "\n\nNo place for models. Set models.s3.bucket, or models.persistence.enabled for a volume." -}}
{{- end -}}
{{- if and $v.models.s3.bucket $v.models.persistence.enabled -}}
{{- fail "\n\nTwo places for models: models.s3.bucket and models.persistence.enabled. Set one of them." -}}
{{- end -}}
{{- if gt (int $v.controlplane.replicas) 1 -}}
{{- if $v.database.sqlite.enabled -}}
{{- fail (printf "\n\ncontrolplane.replicas is %d with database.sqlite.enabled: SQLite is a file of one node, two control planes cannot share it.\nSet controlplane.replicas=1, or use PostgreSQL." (int $v.controlplane.replicas)) -}}
{{- end -}}
{{- if and $v.models.persistence.enabled (not $v.models.persistence.existingClaim) (ne $v.models.persistence.accessMode "ReadWriteMany") -}}
{{- fail (printf "\n\ncontrolplane.replicas is %d with models.persistence.accessMode=%s: every control plane writes models, and such a volume\ncan be mounted on one node alone. Set models.persistence.accessMode=ReadWriteMany, use models.s3.bucket, or set controlplane.replicas=1." (int $v.controlplane.replicas) $v.models.persistence.accessMode) -}}
{{- end -}}
{{- end -}}
{{- if and (eq $v.modelCache.type "hostPath") (not $v.modelCache.hostPath) -}}
{{- fail "\n\nmodelCache.type is hostPath: set modelCache.hostPath to a directory of the nodes." -}}
{{- end -}}
{{- if and (eq $v.modelCache.type "image") (not $v.modelCache.image) -}}
{{- fail "\n\nmodelCache.type is image: set modelCache.image to the repository whose tags are the models' digests." -}}
{{- end -}}
{{- range $component := tuple "controlplane" "dataplane" -}}
{{- $tls := index $v.tls $component -}}
{{- if and (eq $tls.source "existingSecret") (not $tls.existingSecret) -}}
{{- fail (printf "\n\ntls.%s.source is existingSecret: set tls.%s.existingSecret to a Secret with tls.crt and tls.key." $component $component) -}}
{{- end -}}
{{- if and (ne $tls.source "existingSecret") $tls.existingSecret -}}
{{- fail (printf "\n\ntls.%s.existingSecret is set, but tls.%s.source is %s. Set the source to existingSecret." $component $component $tls.source) -}}
{{- end -}}
{{- if and (eq $tls.source "certManager") (not $tls.issuerRef.name) -}}
{{- fail (printf "\n\ntls.%s.source is certManager: set tls.%s.issuerRef.name." $component $component) -}}
{{- end -}}
{{- $exposed := index $v $component -}}
{{- if and $exposed.ingress.enabled (not $exposed.hosts) -}}
{{- fail (printf "\n\n%s.ingress.enabled needs %s.hosts: the names under which it is reached." $component $component) -}}
{{- end -}}
{{- end -}}
{{- if and $v.gateway.enabled (not $v.gateway.parentRefs) -}}
{{- fail "\n\ngateway.enabled needs gateway.parentRefs: the Gateways to attach to." -}}
{{- end -}}
{{- if and $v.gateway.enabled (not $v.dataplane.hosts) -}}
{{- fail "\n\ngateway.enabled needs dataplane.hosts: the names that the route matches." -}}
{{- end -}}
{{- $open := or $v.controlplane.ingress.enabled (ne $v.controlplane.service.type "ClusterIP") -}}
{{- if and $open $v.networkPolicy.enabled (not $v.networkPolicy.controlplane.ingressFrom) -}}
{{- fail "\n\nThe control plane is exposed (controlplane.service.type or controlplane.ingress), but its NetworkPolicy lets in only pods of this release.\nSet networkPolicy.controlplane.ingressFrom to those who may reach it, for instance [{ipBlock: {cidr: 10.0.0.0/8}}]." -}}
{{- end -}}
{{- end -}}
