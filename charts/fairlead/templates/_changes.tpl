{{- /* "true" for an object that the values leave out. */ -}}
{{- define "fairlead.isLeftOut" -}}
{{- $values := .root.Values }}
{{- $kind := .object.kind }}
{{- $name := .object.metadata.name }}
{{- if and (eq $kind "Namespace") (not $values.namespace.create) }}true
{{- else if and (eq $kind "ResourceQuota") (not $values.criticalPodsQuota) }}true
{{- else if and (eq $kind "PodDisruptionBudget") (not (get $values (trimPrefix "fairlead-" $name)).podDisruptionBudget) }}true
{{- else if and $values.policyFiles (has $kind (list "ClusterRole" "ClusterRoleBinding")) (has $name (list "fairlead-webhook-policies" "fairlead-controller-policies")) }}true
{{- end }}
{{- end }}

{{- /* Changes one object in place, and prints nothing. */ -}}
{{- define "fairlead.change" -}}
{{- $values := .root.Values }}
{{- $kind := .object.kind }}
{{- if eq $kind "CustomResourceDefinition" }}
{{- $_ := set .object.metadata "annotations" (merge (dict "helm.sh/resource-policy" "keep") (default dict .object.metadata.annotations)) }}
{{- else if eq $kind "Deployment" }}
{{- include "fairlead.deployment" . }}
{{- else if eq $kind "CronJob" }}
{{- include "fairlead.image" (dict "pod" .object.spec.jobTemplate.spec.template.spec "root" .root) }}
{{- else if and (eq $kind "ValidatingWebhookConfiguration") $values.policyFiles }}
{{- $kept := list }}
{{- range .object.webhooks }}{{ if ne .name "policies.fairlead.dev" }}{{ $kept = append $kept . }}{{ end }}{{ end }}
{{- $_ := set .object "webhooks" $kept }}
{{- else if and (eq $kind "ConfigMap") (eq .object.metadata.name "fairlead-policies") }}
{{- $_ := set .object "data" $values.policyFiles }}
{{- else if and (eq $kind "ValidatingAdmissionPolicy") (eq .object.metadata.name "fairlead-tolerations") }}
{{- include "fairlead.tolerations" . }}
{{- end }}
{{- if and (eq $values.certificates "cert-manager") (hasSuffix "WebhookConfiguration" $kind) }}
{{- $_ := set .object.metadata "annotations" (dict "cert-manager.io/inject-ca-from" "fairlead-system/fairlead-webhook") }}
{{- end }}
{{- end }}

{{- /* The guard of tolerations, with the exempt users and the marks of the chosen sources. */ -}}
{{- define "fairlead.tolerations" -}}
{{- $values := .root.Values }}
{{- with $values.guards.tolerationsExempt }}
{{- $_ := set $.object.spec "matchConditions" (list (dict "name" "not-exempt" "expression" (printf "!(request.userInfo.username in %s)" (sortAlpha . | toJson)))) }}
{{- end }}
{{- $kept := last .object.spec.validations }}
{{- range .root.Files.Get "files/sources.yaml" | fromYamlArray }}
{{- if has .name $values.sources }}
{{- range $mark := .entries }}
{{- $_ := set $kept "expression" (printf "%s && %s" $kept.expression $mark.kept) }}
{{- $_ := set $kept "message" (replace "; create" (printf ", %s; create" $mark.mark) $kept.message) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* The image of a pod, and the Secrets to pull it. */ -}}
{{- define "fairlead.image" -}}
{{- $values := .root.Values }}
{{- $container := first .pod.containers }}
{{- if $values.image.digest }}
{{- $_ := set $container "image" (printf "%s@%s" $values.image.repository $values.image.digest) }}
{{- else }}
{{- $_ := set $container "image" (printf "%s:%s" $values.image.repository (default .root.Chart.AppVersion $values.image.tag)) }}
{{- end }}
{{- with $values.image.pullSecrets }}{{ $_ := set $.pod "imagePullSecrets" . }}{{ end }}
{{- end }}

{{- define "fairlead.deployment" -}}
{{- $values := .root.Values }}
{{- $program := trimPrefix "fairlead-" .object.metadata.name }}
{{- $own := get $values $program }}
{{- $pod := .object.spec.template.spec }}
{{- $container := first $pod.containers }}
{{- include "fairlead.image" (dict "pod" $pod "root" .root) }}
{{- if $own }}
{{- $_ := set .object.spec "replicas" ($own.replicas | int) }}
{{- $_ := set $container "resources" $own.resources }}
{{- with $own.nodeSelector }}{{ $_ := set $pod "nodeSelector" . }}{{ end }}
{{- with $own.tolerations }}{{ $_ := set $pod "tolerations" . }}{{ end }}
{{- if not $own.keepOffSpotNodes }}{{ $_ := unset $pod "affinity" }}{{ end }}
{{- if not $own.spread }}{{ $_ := unset $pod "topologySpreadConstraints" }}{{ end }}
{{- if $own.priorityClassName }}
{{- $_ := set $pod "priorityClassName" $own.priorityClassName }}
{{- else }}
{{- $_ := unset $pod "priorityClassName" }}
{{- end }}
{{- $arguments := $container.args }}
{{- if eq $program "webhook" }}
{{- if $values.policyFiles }}
{{- $read := list }}
{{- range $arguments }}{{ $read = append $read (eq . "--policies-from-cluster" | ternary "--policies=/etc/fairlead/policies" .) }}{{ end }}
{{- $arguments = $read }}
{{- $_ := set $container "volumeMounts" (append $container.volumeMounts (dict "name" "policies" "mountPath" "/etc/fairlead/policies" "readOnly" true)) }}
{{- $_ := set $pod "volumes" (append $pod.volumes (dict "name" "policies" "configMap" (dict "name" "fairlead-policies"))) }}
{{- end }}
{{- if $values.nodes }}{{ $arguments = append $arguments "--nodes" }}{{ end }}
{{- else }}
{{- if eq $values.certificates "controller" }}{{ $arguments = append $arguments "--certificates" }}{{ end }}
{{- if $values.policyReports }}{{ $arguments = append $arguments "--policy-reports" }}{{ end }}
{{- if $values.policyFiles }}{{ $arguments = append $arguments "--no-policy-status" }}{{ end }}
{{- end }}
{{- $_ := set $container "args" (concat $arguments $own.extraArgs) }}
{{- end }}
{{- end }}

{{- /*
The entries of the chosen sources, once. Entries exclude each other: each earlier one gets the
negation of each mark that comes after it, so that a pod is sent once (docs/decisions/0024).
*/ -}}
{{- define "fairlead.entries" -}}
{{- $chosen := .root.Values.sources }}
{{- $policy := .root.Values.failurePolicy }}
{{- $found := .object.webhooks }}
{{- $pattern := deepCopy (first $found) }}
{{- range .root.Files.Get "files/sources.yaml" | fromYamlArray }}
{{- if has .name $chosen }}
{{- range $mark := .entries }}
{{- range $found }}
{{- $_ := set .objectSelector "matchExpressions" (append .objectSelector.matchExpressions $mark.absent) }}
{{- end }}
{{- $entry := deepCopy $pattern }}
{{- $_ := set $entry "name" $mark.name }}
{{- $_ := set $entry "objectSelector" (dict "matchExpressions" (list $mark.present)) }}
{{- $found = append $found $entry }}
{{- end }}
{{- end }}
{{- end }}
{{- range $found }}{{ $_ := set . "failurePolicy" $policy }}{{ end }}
{{- $_ := set .object "webhooks" $found }}
{{- end }}

{{- /* Records on the controller's Deployment what these objects intercept (docs/decisions/0101). */ -}}
{{- define "fairlead.record" -}}
{{- $recorded := dict }}
{{- $controller := dict }}
{{- range .objects }}
{{- if eq .kind "MutatingWebhookConfiguration" }}
{{- range .webhooks }}{{ $_ := set $recorded (trimSuffix ".fairlead.dev" .name) "mutating" }}{{ end }}
{{- else if eq .kind "ValidatingWebhookConfiguration" }}
{{- range .webhooks }}{{ $_ := set $recorded (trimSuffix ".fairlead.dev" .name) "validating" }}{{ end }}
{{- else if eq .kind "ValidatingAdmissionPolicy" }}
{{- $_ := set $recorded .metadata.name "guard" }}
{{- else if and (eq .kind "Deployment") (eq .metadata.name "fairlead-controller") }}
{{- $controller = . }}
{{- end }}
{{- end }}
{{- if .root.Values.policyFiles }}{{ $_ := unset $recorded "policies" }}{{ end }}
{{- $annotations := dict }}
{{- range $name, $kind := $recorded }}{{ $_ := set $annotations (printf "intercepts.fairlead.dev/%s" $name) $kind }}{{ end }}
{{- $_ := set $controller.metadata "annotations" $annotations }}
{{- end }}
