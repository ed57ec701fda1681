{{/* Not empty: records are in PostgreSQL and bytes in a bucket, so that pods share nothing but these. */}}
{{- define "tidefill.onCluster" -}}
{{- if eq ((.Values.config.store).backend | default "embedded") "cluster" }}true{{ end }}
{{- end }}

{{/*
The Deployments, or the StatefulSet: their names, roles and replicas. label tells their pods apart; it is empty for the
StatefulSet.
*/}}
{{- define "tidefill.components" -}}
{{- $name := include "tidefill.name" . }}
{{- if not (include "tidefill.onCluster" .) }}
- {name: {{ $name }}, label: "", replicas: 1, servesAPI: true, dispatches: true, roles: ""}
{{- else if eq .Values.roles "separate" }}
- {name: {{ $name }}-api, label: api, replicas: {{ .Values.replicas }}, servesAPI: true, dispatches: false, roles: api}
- name: {{ $name }}-dispatch
  label: dispatch
  replicas: {{ .Values.dispatch.replicas }}
  servesAPI: false
  dispatches: true
  roles: dispatch,scale
{{- else }}
- {name: {{ $name }}, label: all, replicas: {{ .Values.replicas }}, servesAPI: true, dispatches: true, roles: ""}
{{- end }}
{{- end }}

{{/* The labels of the pods of a component; the arguments are those of tidefill.pod. */}}
{{- define "tidefill.podSelector" -}}
{{- include "tidefill.selector" .root }}
{{- with .component.label }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- end }}

{{/* The files of Secrets for the cluster store, as sources of a volume. Their paths are those of tidefill.storeConfig. */}}
{{- define "tidefill.storeSecrets" -}}
{{- with .Values.store }}
{{- range $part := list "metadata" "live" }}
{{- with index $.Values.store $part }}
{{- with .secret }}
- {name: {{ . }}, items: [{key: {{ (index $.Values.store $part).passwordKey | quote }}, path: {{ $part }}-password}]}
{{- end }}
{{- end }}
{{- end }}
{{- with .objects }}{{ if .secret }}
- name: {{ .secret }}
  items:
    - {key: {{ .accessKey | quote }}, path: objects-access-key}
    - {key: {{ .secretKey | quote }}, path: objects-secret-key}
{{- end }}{{ end }}
{{- range $part := list "metadata" "objects" "live" }}
{{- with (index $.Values.store $part).caSecret }}
- {name: {{ . }}, items: [{key: ca.crt, path: {{ $part }}-ca.crt}]}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* The keys of the configuration that name these files. The address of PostgreSQL names its own (sslrootcert). */}}
{{- define "tidefill.storeConfig" -}}
{{- with .Values.store }}
{{- if .metadata.secret }}
metadata: {password_file: /etc/tidefill-store/metadata-password}
{{- end }}
{{- if or .objects.secret .objects.caSecret }}
objects:
  {{- if .objects.secret }}
  access_key_file: /etc/tidefill-store/objects-access-key
  secret_key_file: /etc/tidefill-store/objects-secret-key
  {{- end }}
  {{- if .objects.caSecret }}
  ca_file: /etc/tidefill-store/objects-ca.crt
  {{- end }}
{{- end }}
{{- if or .live.secret .live.caSecret }}
live:
  {{- if .live.secret }}
  password_file: /etc/tidefill-store/live-password
  {{- end }}
  {{- if .live.caSecret }}
  ca_file: /etc/tidefill-store/live-ca.crt
  {{- end }}
{{- end }}
{{- end }}
{{- end }}
