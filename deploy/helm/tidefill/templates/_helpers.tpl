{{/* The name of all objects. */}}
{{- define "tidefill.name" -}}
{{- if contains "tidefill" .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else }}{{ printf "%s-tidefill" .Release.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "tidefill.selector" -}}
app.kubernetes.io/name: tidefill
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "tidefill.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (.Values.serviceAccount.create | ternary (include "tidefill.name" .) "default") }}
{{- end }}

{{- define "tidefill.keysSecret" -}}
{{- .Values.auth.secret | default (printf "%s-keys" (include "tidefill.name" .)) }}
{{- end }}

{{/* The scheme of the API and of the admin address. */}}
{{- define "tidefill.scheme" -}}
{{- if .Values.tls.secret }}https{{ else }}http{{ end }}
{{- end }}

{{/* Not empty: a pool is in Kubernetes, so the daemon uses the API server. */}}
{{- define "tidefill.usesKubernetes" -}}
{{- range .Values.config.pools }}{{ if .kubernetes }}true{{ end }}{{ end }}
{{- if ((.Values.config.registry).kubernetes).pools }}true{{ end }}
{{- end }}

{{/* Not empty: the namespace of ConfigMaps with templates and profiles, which every pod reads. */}}
{{- define "tidefill.registryNamespace" -}}
{{- with ((.Values.config.registry).kubernetes).namespace }}{{ . }}{{ end }}
{{- end }}

{{/* Not empty: every pod reads the registry from the API server. */}}
{{- define "tidefill.readsRegistry" -}}
{{- include "tidefill.registryNamespace" . }}
{{- with (.Values.config.registry).kubernetes }}{{ if or .use_cases .pools }}true{{ end }}{{ end }}
{{- end }}

{{/* What the chart sets of the configuration. */}}
{{- define "tidefill.fixedConfig" -}}
listen: ":8080"
admin_listen: ":8081"
data: /var/lib/tidefill
auth: {keys_file: /etc/tidefill-keys/keys.yaml}
{{- with .Values.tls }}{{ if .secret }}
tls:
  cert_file: /etc/tidefill-tls/tls.crt
  key_file: /etc/tidefill-tls/tls.key
  {{- if .clientCA }}
  client_ca_file: /etc/tidefill-tls/ca.crt
  {{- end }}
{{- end }}{{ end }}
{{- with include "tidefill.storeConfig" . }}
store:
  cluster: {{- . | nindent 4 }}
{{- end }}
{{- if .Values.registry.secrets }}
registry: {secrets_dir: /etc/tidefill-registry}
{{- end }}
{{- if .Values.config.pools }}
scaler:
  listen: ":9090"
  {{- with .Values.scaler.tls }}{{ if .secret }}
  tls:
    cert_file: /etc/tidefill-scaler-tls/tls.crt
    key_file: /etc/tidefill-scaler-tls/tls.key
    {{- if .clientCA }}
    client_ca_file: /etc/tidefill-scaler-tls/ca.crt
    {{- end }}
  {{- end }}{{ end }}
{{- end }}
{{- end }}

{{/* The configuration file. */}}
{{- define "tidefill.config" -}}
{{- $config := mergeOverwrite (deepCopy .Values.config) (include "tidefill.fixedConfig" . | fromYaml) }}
{{- if include "tidefill.usesKubernetes" . }}{{/* releases in one namespace have Leases of their own */}}
{{- $lease := dict "lease" (include "tidefill.name" .) }}
{{- $_ := set $config "kubernetes" (mergeOverwrite $lease ($config.kubernetes | default dict)) }}
{{- end }}
{{- if include "tidefill.onCluster" . }}{{/* Services send users to other pods before this one stops to listen */}}
{{- $_ := set $config "shutdown" (mergeOverwrite (dict "delay" "5s") ($config.shutdown | default dict)) }}
{{- end }}
{{- toYaml $config }}
{{- end }}

{{/* The seconds of a duration such as 1m30s; the argument is the duration. */}}
{{- define "tidefill.seconds" -}}
{{- $units := dict "d" 86400.0 "h" 3600.0 "m" 60.0 "s" 1.0 "ms" 0.001 }}
{{- $sum := 0.0 }}
{{- range regexFindAll "[0-9.]+(ms|d|h|m|s)" (toString .) -1 }}
{{- $sum = addf $sum (mulf (regexFind "[0-9.]+" . | float64) (get $units (regexFind "[a-z]+" .))) }}
{{- end }}
{{- $sum }}
{{- end }}
