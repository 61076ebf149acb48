{{/* What all pods of the chart have in common. Arguments are written above each definition. */}}

{{/*
The reference of an image: registry/repository:tag, and @digest behind it where one is given, which then alone decides. The
tag stays, because the control plane reads Triton's release in it. dict "root" $ "image" .Values.images.NAME
*/}}
{{- define "amphitrite.image" -}}
{{- $registry := .root.Values.global.imageRegistry | default .image.registry -}}
{{- printf "%s/%s:%s" $registry .image.repository (.image.tag | default .root.Chart.AppVersion) -}}
{{- with .image.digest -}}{{- printf "@%s" . -}}{{- end -}}
{{- end -}}

{{/* Without a context: $ */}}
{{- define "amphitrite.imagePullSecrets" -}}
{{- with .Values.global.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* Where a pod may run. dict "root" $ "component" NAME "values" .Values.NAME "spread" BOOL */}}
{{- define "amphitrite.scheduling" -}}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if .spread }}
topologySpreadConstraints:
  {{- if .values.topologySpreadConstraints }}
  {{- toYaml .values.topologySpreadConstraints | nindent 2 }}
  {{- else }}
  {{- range tuple "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "amphitrite.selector" $ | nindent 8 }}
    # Pods of this revision alone: those that a rollout is about to stop do not count.
    matchLabelKeys: [pod-template-hash]
  {{- end }}
  {{- end }}
{{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}

{{- define "amphitrite.podSecurityContext" -}}
{{ toYaml .Values.podSecurityContext }}
{{- end -}}

{{- define "amphitrite.containerSecurityContext" -}}
{{ toYaml .Values.containerSecurityContext }}
{{- end -}}

{{/* The longest that a request in flight may take: the bound of request_timeout_ms, and a little to say goodbye. Seconds. */}}
{{- define "amphitrite.dataplane.grace" -}}
{{- if kindIs "invalid" .Values.dataplane.drain.graceSeconds -}}
{{- add (div (add (int64 .Values.limits.requestTimeoutMs) 999) 1000) 10 -}}
{{- else -}}
{{- int64 .Values.dataplane.drain.graceSeconds -}}
{{- end -}}
{{- end -}}
