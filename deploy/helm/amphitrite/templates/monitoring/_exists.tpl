{{/* "yes" where the Prometheus operator's kinds are there. */}}
{{- define "amphitrite.monitoring.exists" -}}
{{- if .Capabilities.APIVersions.Has "monitoring.coreos.com/v1" -}}yes{{- end -}}
{{- end -}}
