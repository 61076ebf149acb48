{{/* What the control plane is told, and the files it finds. */}}

{{- define "amphitrite.controlplane.environment" -}}
{{- $v := .Values -}}
# A directory below the volume's root, which belongs to root: only an owner may set a mode.
- {name: ML_HOME, value: /var/lib/amphitrite/home}
- {name: ML_HOST, value: 0.0.0.0}
- {name: ML_PORT, value: "8443"}
- {name: ML_RUNTIME, value: kubernetes}
- {name: ML_DATAPLANE, value: external}
{{- if $v.database.sqlite.enabled }}
- {name: ML_DATABASE_URL, value: "sqlite:////var/lib/amphitrite/database/amphitrite.db"}
{{- else if $v.postgresql.enabled }}
- {name: ML_DATABASE_URL, value: "postgresql+psycopg://amphitrite@{{ include "amphitrite.postgresql" . }}:5432/amphitrite"}
- name: PGPASSWORD
  valueFrom: {secretKeyRef: {name: {{ include "amphitrite.postgresql.secret" . }}, key: password}}
{{- else }}
- name: ML_DATABASE_URL
  valueFrom:
    secretKeyRef:
      name: {{ include "amphitrite.database.secret" . }}
      key: {{ include "amphitrite.database.key" . }}
{{- end }}
{{- if $v.models.s3.bucket }}
- {name: ML_MODELS_URL, value: {{ printf "s3://%s/%s" $v.models.s3.bucket $v.models.s3.prefix | trimSuffix "/" | quote }}}
{{- with $v.models.s3.endpoint }}
- {name: AWS_ENDPOINT_URL, value: {{ . | quote }}}
{{- end }}
{{- with $v.models.s3.region }}
- {name: AWS_DEFAULT_REGION, value: {{ . | quote }}}
{{- end }}
{{- with $v.models.s3.existingSecret }}
{{- range tuple "AWS_ACCESS_KEY_ID" "AWS_SECRET_ACCESS_KEY" }}
- name: {{ . }}
  valueFrom:
    secretKeyRef:
      name: {{ $v.models.s3.existingSecret }}
      key: {{ . }}
{{- end }}
{{- end }}
{{- else }}
- {name: ML_MODELS_URL, value: "file:///var/lib/amphitrite/models/store"}
{{- end }}
- {name: ML_API_URL, value: {{ include "amphitrite.controlplane.url" . | quote }}}
- {name: ML_SCORING_URL, value: {{ include "amphitrite.dataplane.url" . | quote }}}
{{- with $v.dataplane.scoringDomain }}
- {name: ML_SCORING_DOMAIN, value: {{ . | quote }}}
{{- end }}
- {name: ML_FETCH_URL, value: {{ include "amphitrite.controlplane.internalUrl" . | quote }}}
- {name: ML_TLS_DIRECTORY, value: /etc/amphitrite/tls}
- {name: ML_CREDENTIALS_DIRECTORY, value: /etc/amphitrite/credentials}
- name: ML_KUBERNETES_NAMESPACE
  valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
- name: ML_POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
{{- if not $v.database.sqlite.enabled }}
- {name: ML_LEASE_NAME, value: {{ include "amphitrite.controlplane" . }}}
{{- end }}
- {name: ML_RELEASE, value: {{ .Release.Name }}}
- {name: ML_TABLE_SECRET, value: {{ include "amphitrite.routingTable" . }}}
- {name: ML_TRITON_IMAGE, value: {{ include "amphitrite.image" (dict "root" . "image" $v.images.triton) | quote }}}
- {name: ML_FETCHER_IMAGE, value: {{ include "amphitrite.image" (dict "root" . "image" $v.images.fetcher) | quote }}}
- {name: ML_IMAGE_PULL_POLICY, value: {{ $v.images.triton.pullPolicy }}}
{{- with $v.global.imagePullSecrets }}
- {name: ML_IMAGE_PULL_SECRETS, value: {{ join "," . | quote }}}
{{- end }}
- {name: ML_MODEL_CACHE, value: {{ include "amphitrite.modelCache" . | quote }}}
{{- with $v.modelCache.maxBytes }}
- {name: ML_MODEL_CACHE_BYTES, value: {{ . | int64 | quote }}}
{{- end }}
- {name: ML_INSTANCE_SCRATCH_BYTES, value: {{ int64 $v.instances.scratchBytes | quote }}}
- {name: ML_INSTANCE_STORAGE_REQUESTS, value: {{ $v.instances.storageRequests | quote }}}
- {name: ML_METRICS_FROM, value: {{ include "amphitrite.metricsFrom" . | quote }}}
{{- if $v.instanceTypes }}
- {name: ML_INSTANCE_TYPES, value: /etc/amphitrite/instance-types/instance-types.yaml}
{{- end }}
- {name: ML_PROXY_SELECTOR, value: {{ include "amphitrite.selector" (dict "root" . "component" "dataplane") | replace ": " "=" | replace "\n" "," | quote }}}
- {name: ML_LOG_FORMAT, value: {{ $v.controlplane.logFormat }}}
- {name: ML_LOG_TO, value: stdout}
{{- range $name, $value := $v.limits }}
- {name: ML_LIMIT_{{ $name | snakecase | upper }}, value: {{ int64 $value | quote }}}
{{- end }}
- {name: ML_SCORING_TOKEN_LIFETIME_S, value: {{ int64 $v.tokens.lifetimeSeconds | quote }}}
- {name: ML_SCORING_TOKEN_ROTATION_S, value: {{ int64 $v.tokens.rotationSeconds | quote }}}
{{- with $v.tokens.issuer }}
- {name: ML_SCORING_ISSUER, value: {{ . | quote }}}
{{- end }}
{{- with $v.tokens.audiences }}
- {name: ML_SCORING_AUDIENCES, value: {{ join "," . | quote }}}
{{- end }}
{{- with $v.controlplane.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* NetworkPolicyPeers in JSON. */}}
{{- define "amphitrite.metricsFrom" -}}
{{- $anywhere := list (dict "namespaceSelector" (dict)) -}}
{{- $default := ternary $anywhere (list) .Values.monitoring.podMonitor.enabled -}}
{{- .Values.networkPolicy.metricsFrom | default $default | toJson -}}
{{- end -}}

{{- define "amphitrite.modelCache" -}}
{{- $cache := .Values.modelCache -}}
{{- if eq $cache.type "pvc" -}}pvc:{{ include "amphitrite.modelCache.claim" . }}
{{- else if eq $cache.type "hostPath" -}}hostPath:{{ $cache.hostPath }}
{{- else if eq $cache.type "image" -}}image:{{ $cache.image }}
{{- else -}}emptyDir{{- end -}}
{{- end -}}

{{- define "amphitrite.controlplane.volumeMounts" -}}
- {name: state, mountPath: /var/lib/amphitrite}
- {name: tmp, mountPath: /tmp}
- {name: tls, mountPath: /etc/amphitrite/tls, readOnly: true}
- {name: credentials, mountPath: /etc/amphitrite/credentials, readOnly: true}
{{- if .Values.database.sqlite.enabled }}
- {name: database, mountPath: /var/lib/amphitrite/database}
{{- end }}
{{- if .Values.models.persistence.enabled }}
- {name: models, mountPath: /var/lib/amphitrite/models}
{{- end }}
{{- if .Values.instanceTypes }}
- {name: instance-types, mountPath: /etc/amphitrite/instance-types, readOnly: true}
{{- end }}
{{- with .Values.controlplane.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "amphitrite.controlplane.volumes" -}}
- {name: state, emptyDir: {sizeLimit: 1Gi}}
# Uploads pass through it.
- {name: tmp, emptyDir: {sizeLimit: {{ .Values.controlplane.tmpSizeLimit }}}}
- name: tls
  secret:
    secretName: {{ include "amphitrite.controlplane.tlsSecret" . }}
    defaultMode: 0440
- name: credentials
  secret:
    secretName: {{ include "amphitrite.credentials" . }}
    defaultMode: 0440
{{- if .Values.database.sqlite.enabled }}
- name: database
  persistentVolumeClaim: {claimName: {{ include "amphitrite.sqlite.claim" . }}}
{{- end }}
{{- if .Values.models.persistence.enabled }}
- name: models
  persistentVolumeClaim: {claimName: {{ include "amphitrite.models.claim" . }}}
{{- end }}
{{- if .Values.instanceTypes }}
- name: instance-types
  configMap: {name: {{ include "amphitrite.fullname" . }}-instance-types}
{{- end }}
{{- with .Values.controlplane.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}
