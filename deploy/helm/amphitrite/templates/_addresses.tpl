{{/* Who is reached where, and under which names. */}}

{{- define "amphitrite.controlplane.internalUrl" -}}
{{- printf "https://%s.%s.svc:%d" (include "amphitrite.controlplane" .) .Release.Namespace (int .Values.controlplane.service.port) -}}
{{- end -}}

{{/* The first outside name, else the Service. A port is written where it is not HTTPS's own. */}}
{{- define "amphitrite.url" -}}
{{- $host := printf "%s.%s.svc" .service .root.Release.Namespace -}}
{{- if .values.hosts -}}{{- $host = first .values.hosts -}}{{- end -}}
{{- $port := int .values.service.port -}}
{{- if and .values.hosts (or .values.ingress.enabled .root.Values.gateway.enabled) -}}{{- $port = 443 -}}{{- end -}}
{{- if eq $port 443 -}}https://{{ $host }}{{- else -}}https://{{ $host }}:{{ $port }}{{- end -}}
{{- end -}}

{{- define "amphitrite.controlplane.url" -}}
{{- .Values.controlplane.url | default (include "amphitrite.url" (dict "root" . "service" (include "amphitrite.controlplane" .) "values" .Values.controlplane)) -}}
{{- end -}}
{{- define "amphitrite.dataplane.url" -}}
{{- .Values.dataplane.url | default (include "amphitrite.url" (dict "root" . "service" (include "amphitrite.dataplane" .) "values" .Values.dataplane)) -}}
{{- end -}}

{{/* Names in a certificate, one to a line. dict "root" $ "service" NAME "hosts" LIST */}}
{{- define "amphitrite.certificateNames" -}}
{{- $namespace := .root.Release.Namespace -}}
{{- range .hosts }}
{{ . }}
{{- end }}
{{- if eq .service (include "amphitrite.dataplane" .root) }}
{{- with .root.Values.dataplane.scoringDomain }}
*.{{ . }}
{{- end }}
{{- end }}
{{ .service }}
{{ .service }}.{{ $namespace }}
{{ .service }}.{{ $namespace }}.svc
{{ .service }}.{{ $namespace }}.svc.{{ .root.Values.clusterDomain }}
localhost
{{- end -}}
