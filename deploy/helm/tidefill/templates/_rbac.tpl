{{/* The rules that a pool needs: those of autoscale/kube/rbac.go. The argument is pools[].kubernetes. */}}
{{- define "tidefill.poolRules" -}}
{{- with .service }}
- {apiGroups: [""], resources: [services], verbs: [list, watch], resourceNames: [{{ quote . }}]}
- {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list, watch]}
{{- end }}
{{- with .inference_pool }}
- apiGroups: [{{ $.inference_pool_group | default "inference.networking.k8s.io" }}]
  resources: [inferencepools]
  verbs: [list, watch]
  resourceNames: [{{ quote . }}]
{{- end }}
- {apiGroups: [""], resources: [pods], verbs: [list, watch]}
{{- with .target }}{{ if .name }}
{{- $kind := .kind | default "Deployment" }}
{{- $group := contains "/" (.api_version | default "apps/v1") | ternary (.api_version | default "apps/v1" | splitList "/" | first) "" }}
{{- $resource := include "tidefill.plural" (lower $kind) }}
{{- if ne $kind "StatefulSet" }}
- {apiGroups: [""], resources: [pods], verbs: [patch]}
{{- end }}
- {apiGroups: [{{ quote $group }}], resources: [{{ $resource }}], verbs: [list, watch], resourceNames: [{{ quote .name }}]}
- {apiGroups: [{{ quote $group }}], resources: [{{ $resource }}/scale], verbs: [get], resourceNames: [{{ quote .name }}]}
{{- end }}{{ end }}
{{- with .metrics }}
{{- range list .running .waiting .kv_used }}
{{- with (. | default dict).pods }}
- {apiGroups: [custom.metrics.k8s.io], resources: [{{ printf "pods/%s" . | quote }}], verbs: [get]}
{{- end }}
{{- with (. | default dict).external }}
- {apiGroups: [external.metrics.k8s.io], resources: [{{ quote . }}], verbs: [list]}
{{- end }}
{{- end }}
{{- if .resources }}
- {apiGroups: [metrics.k8s.io], resources: [pods], verbs: [list]}
{{- end }}
{{- end }}
{{- end }}

{{/* The rules that the Lease needs. No rule can limit creation to a name. The argument is the name. */}}
{{- define "tidefill.leaseRules" -}}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, update], resourceNames: [{{ quote . }}]}
{{- end }}

{{/* The rules that ConfigMaps with templates and profiles need. The argument is registry.kubernetes. */}}
{{- define "tidefill.registryRules" -}}
{{- $names := list (.templates | default "aibrix-model-deployment-templates") (.profiles | default "aibrix-batch-profiles") }}
- {apiGroups: [""], resources: [configmaps], verbs: [list, watch], resourceNames: {{ uniq $names | toJson }}}
{{- end }}

{{/* The rules that objects of the registry need: those of autoscale/kube/rbac.go. The argument is registry.kubernetes. */}}
{{- define "tidefill.objectRules" -}}
{{- if .use_cases }}
- {apiGroups: [tidefill.dev], resources: [usecasesets], verbs: [list, watch]}
- {apiGroups: [tidefill.dev], resources: [usecasesets/status], verbs: [patch]}
- {apiGroups: [llm-d.ai], resources: [inferenceobjectives], verbs: [list, watch]}
- {apiGroups: [inference.networking.x-k8s.io], resources: [inferenceobjectives], verbs: [list, watch]}
{{- end }}
{{- if .pools }}
- {apiGroups: [tidefill.dev], resources: [pools], verbs: [list, watch]}
- {apiGroups: [tidefill.dev], resources: [pools/status], verbs: [patch]}
- {apiGroups: [inference.networking.k8s.io], resources: [inferencepools], verbs: [list, watch]}
- {apiGroups: [""], resources: [pods], verbs: [list, watch]}
{{- end }}
{{- end }}

{{/* The resource of a kind in lower case. */}}
{{- define "tidefill.plural" -}}
{{- if hasSuffix "s" . }}{{ . }}es{{ else if hasSuffix "y" . }}{{ trimSuffix "y" . }}ies{{ else }}{{ . }}s{{ end }}
{{- end }}
