{{/* What is in front of a component. dict "root" $ "component" NAME "values" .Values.NAME "targetPort" NAME */}}

{{- define "amphitrite.service" -}}
{{- $service := .values.service -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ include (printf "amphitrite.%s" .component) .root }}
  labels:
    {{- include "amphitrite.labels" . | nindent 4 }}
  {{- with $service.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  type: {{ $service.type }}
  {{- if ne $service.type "ClusterIP" }}
  externalTrafficPolicy: {{ $service.externalTrafficPolicy }}
  {{- end }}
  {{- if eq $service.type "LoadBalancer" }}
  {{- with $service.loadBalancerClass }}
  loadBalancerClass: {{ . }}
  {{- end }}
  {{- with $service.loadBalancerSourceRanges }}
  loadBalancerSourceRanges:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- end }}
  selector:
    {{- include "amphitrite.selector" . | nindent 4 }}
  ports:
    - name: https
      port: {{ int $service.port }}
      targetPort: https
      protocol: TCP
      appProtocol: https
      {{- if and (ne $service.type "ClusterIP") $service.nodePort }}
      nodePort: {{ int $service.nodePort }}
      {{- end }}
{{- end -}}

{{/* The same, and "path" PREFIX. */}}
{{- define "amphitrite.ingress" -}}
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: {{ include (printf "amphitrite.%s" .component) .root }}
  labels:
    {{- include "amphitrite.labels" . | nindent 4 }}
  {{- with .values.ingress.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- with .values.ingress.className }}
  ingressClassName: {{ . }}
  {{- end }}
  tls:
    - hosts:
        {{- toYaml .values.hosts | nindent 8 }}
      {{- with .values.ingress.tlsSecret }}
      secretName: {{ . }}
      {{- end }}
  rules:
    {{- range .values.hosts }}
    - host: {{ . }}
      http:
        paths:
          - path: {{ $.path }}
            pathType: Prefix
            backend:
              service:
                name: {{ include (printf "amphitrite.%s" $.component) $.root }}
                port: {name: https}
    {{- end }}
{{- end -}}

{{- define "amphitrite.podDisruptionBudget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include (printf "amphitrite.%s" .component) .root }}
  labels:
    {{- include "amphitrite.labels" . | nindent 4 }}
spec:
  maxUnavailable: {{ .values.podDisruptionBudget.maxUnavailable }}
  # A pod that is not ready serves nobody: it may always be evicted.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "amphitrite.selector" . | nindent 6 }}
{{- end -}}
