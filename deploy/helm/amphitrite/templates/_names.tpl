{{/* Names and labels. Nothing else of the chart spells them. */}}

{{- define "amphitrite.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* At most 40 characters: the longest suffix of ours then still fits into the 63 of a label or a Service. */}}
{{- define "amphitrite.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "amphitrite.controlplane" -}}{{ include "amphitrite.fullname" . }}-controlplane{{- end -}}
{{- define "amphitrite.dataplane" -}}{{ include "amphitrite.fullname" . }}-dataplane{{- end -}}
{{- define "amphitrite.postgresql" -}}{{ include "amphitrite.fullname" . }}-postgresql{{- end -}}
{{- define "amphitrite.routingTable" -}}{{ include "amphitrite.fullname" . }}-routing-table{{- end -}}
{{- define "amphitrite.authority" -}}{{ include "amphitrite.fullname" . }}-authority{{- end -}}

{{/* The chain of a certificate is in a Secret of its own, so that whoever reads one key reads no other. */}}
{{- define "amphitrite.controlplane.tlsSecret" -}}
{{- .Values.tls.controlplane.existingSecret | default (printf "%s-tls" (include "amphitrite.controlplane" .)) -}}
{{- end -}}
{{- define "amphitrite.dataplane.tlsSecret" -}}
{{- .Values.tls.dataplane.existingSecret | default (printf "%s-tls" (include "amphitrite.dataplane" .)) -}}
{{- end -}}
{{- define "amphitrite.credentials" -}}
{{- .Values.credentials.existingSecret | default (printf "%s-credentials" (include "amphitrite.fullname" .)) -}}
{{- end -}}
{{- define "amphitrite.postgresql.secret" -}}
{{- .Values.postgresql.existingSecret | default (include "amphitrite.postgresql" .) -}}
{{- end -}}
{{- define "amphitrite.database.secret" -}}
{{- .Values.database.existingSecret.name | default (printf "%s-database" (include "amphitrite.fullname" .)) -}}
{{- end -}}
{{- define "amphitrite.database.key" -}}
{{- if .Values.database.existingSecret.name -}}{{ .Values.database.existingSecret.key }}{{- else -}}url{{- end -}}
{{- end -}}
{{- define "amphitrite.models.claim" -}}
{{- .Values.models.persistence.existingClaim | default (printf "%s-models" (include "amphitrite.fullname" .)) -}}
{{- end -}}
{{- define "amphitrite.modelCache.claim" -}}
{{- .Values.modelCache.pvc.existingClaim | default (printf "%s-model-cache" (include "amphitrite.fullname" .)) -}}
{{- end -}}
{{- define "amphitrite.sqlite.claim" -}}
{{- .Values.database.sqlite.existingClaim | default (printf "%s-database" (include "amphitrite.fullname" .)) -}}
{{- end -}}

{{- define "amphitrite.controlplane.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "amphitrite.controlplane" .) -}}
{{- else -}}
{{- required "serviceAccount.create is false: serviceAccount.name must name an account that exists" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "amphitrite.chart" -}}
{{- printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* What an object is chosen by. Argument: dict "root" $ "component" NAME. Never changes within a release. */}}
{{- define "amphitrite.selector" -}}
app.kubernetes.io/name: {{ include "amphitrite.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "amphitrite.labels" -}}
helm.sh/chart: {{ include "amphitrite.chart" .root }}
{{ include "amphitrite.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: amphitrite
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Of pods: nothing that changes with the chart alone, so that a new chart does not restart what it leaves as it is. */}}
{{- define "amphitrite.podLabels" -}}
{{ include "amphitrite.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: amphitrite
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The pods of deployments: what the control plane of this release makes. It is told the release's name by ML_RELEASE. */}}
{{- define "amphitrite.instances" -}}
app.kubernetes.io/name: amphitrite
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: instance
{{- end -}}
