{{- /* Drops every field that is null from a value in place: null is no field, as for the API server. */ -}}
{{- define "fairlead.dropNulls" -}}
{{- $value := . }}
{{- range $key, $each := $value }}
{{- if kindIs "invalid" $each }}{{ $_ := unset $value $key }}
{{- else if or (kindIs "map" $each) (kindIs "slice" $each) }}{{ include "fairlead.dropNulls" $each }}
{{- end }}
{{- end }}
{{- end }}

{{- /*
Fails if two ports of one network are the same. Pods have one each, except those of the node's
network. `places` have the values that are ports.
*/ -}}
{{- define "fairlead.checkPorts" -}}
{{- $values := .values }}
{{- $taken := dict }}
{{- $faults := list }}
{{- range $row := .places }}
{{- if hasSuffix "/containerPort" $row.at }}
{{- $steps := splitList "." $row.value }}
{{- $program := get $values (first $steps) }}
{{- $port := get $program (last $steps) | toString }}
{{- $network := $program.hostNetwork | ternary "the nodes" (first $steps) }}
{{- $place := printf "%s/%s" $network $port }}
{{- if hasKey $taken $place }}
{{- $faults = append $faults (printf "%s: %s is %s too, on the network of %s; choose another port" $row.value $port (get $taken $place) $network) }}
{{- else }}
{{- $_ := set $taken $place $row.value }}
{{- end }}
{{- end }}
{{- end }}
{{- if $faults }}{{ fail (join "; " $faults) }}{{ end }}
{{- end }}

{{- /* "true" for an object that the values leave out. */ -}}
{{- define "fairlead.isLeftOut" -}}
{{- $values := .root.Values }}
{{- $kind := .object.kind }}
{{- $name := .object.metadata.name }}
{{- if and (eq $kind "Namespace") (not $values.namespace.create) }}true
{{- else if and (eq $kind "NetworkPolicy") (not $values.networkPolicy.enabled) }}true
{{- else if and (eq $kind "ResourceQuota") (not $values.criticalPodsQuota) }}true
{{- else if and (eq $kind "PodDisruptionBudget") (not (get $values (trimPrefix "fairlead-" $name)).podDisruptionBudget) }}true
{{- else if and $values.policyFiles (has $kind (list "ClusterRole" "ClusterRoleBinding")) (has $name (list "fairlead-webhook-policies" "fairlead-controller-policies")) }}true
{{- end }}
{{- end }}

{{- /* Changes one object in place, and prints nothing. `places` are the rows of files/places.yaml. */ -}}
{{- define "fairlead.change" -}}
{{- $values := .root.Values }}
{{- $kind := .object.kind }}
{{- $name := .object.metadata.name }}
{{- if eq $kind "CustomResourceDefinition" }}
{{- $_ := set .object.metadata "annotations" (merge (dict "helm.sh/resource-policy" "keep") (default dict .object.metadata.annotations)) }}
{{- else if eq $kind "Namespace" }}
{{- if eq (include "fairlead.podSecurity" .root) "privileged" }}
{{- $_ := set .object.metadata.labels "pod-security.kubernetes.io/enforce" "privileged" }}
{{- end }}
{{- else if eq $kind "Deployment" }}
{{- include "fairlead.deployment" . }}
{{- else if eq $kind "CronJob" }}
{{- include "fairlead.image" (dict "pod" .object.spec.jobTemplate.spec.template.spec "root" .root) }}
{{- else if and (eq $kind "NetworkPolicy") (eq $name "fairlead-controller") $values.webhook.hostNetwork }}
{{- /* No selector of pods selects pods of the node's network. */ -}}
{{- $ports := list (dict "port" $values.webhook.port "protocol" "TCP") (dict "port" $values.webhook.healthPort "protocol" "TCP") }}
{{- $_ := set .object.spec "egress" (append (initial .object.spec.egress) (dict "ports" $ports)) }}
{{- else if and (eq $kind "ValidatingWebhookConfiguration") $values.policyFiles }}
{{- $kept := list }}
{{- range .object.webhooks }}{{ if ne .name "policies.fairlead.dev" }}{{ $kept = append $kept . }}{{ end }}{{ end }}
{{- $_ := set .object "webhooks" $kept }}
{{- else if and (eq $kind "ConfigMap") (eq $name "fairlead-policies") }}
{{- $_ := set .object "data" $values.policyFiles }}
{{- else if and (eq $kind "ValidatingAdmissionPolicy") (eq $name "fairlead-tolerations") }}
{{- include "fairlead.tolerations" . }}
{{- end }}
{{- if and (eq $values.certificates "cert-manager") (hasSuffix "WebhookConfiguration" $kind) }}
{{- $_ := set .object.metadata "annotations" (dict "cert-manager.io/inject-ca-from" "fairlead-system/fairlead-webhook") }}
{{- end }}
{{- range $row := .places }}
{{- if and (regexMatch (printf "^(%s)$" $row.kind) $kind) (regexMatch (printf "^(%s)$" $row.name) $name) }}
{{- include "fairlead.place" (dict "row" $row "object" $.object "values" $values) }}
{{- end }}
{{- end }}
{{- end }}

{{- /*
Writes one value to one place of one object (tests/manifests/value_rows.py describes a row). A value
that equals its default changes nothing: the object has it.
*/ -}}
{{- define "fairlead.place" -}}
{{- $row := .row }}
{{- $value := .values }}
{{- range splitList "." $row.value }}{{ $value = get $value . }}{{ end }}
{{- if ne (toJson $value) (toJson $row.default) }}
{{- if $row.field }}{{ $value = get $value $row.field }}{{ end }}
{{- if and $value (hasKey $row "item") }}
{{- $value = kindIs "string" $row.item | ternary (replace "%v" (toString $value) (toString $row.item)) $row.item }}
{{- if eq $row.how "append" }}{{ $value = list $value }}{{ end }}
{{- end }}
{{- $steps := splitList "/" $row.at }}
{{- $key := last $steps }}
{{- $parents := list .object }}
{{- range $step := initial $steps }}
{{- $next := list }}
{{- range $parent := $parents }}
{{- if kindIs "slice" $parent }}
{{- range $index, $element := $parent }}
{{- if has $step (list "*" (toString $index) (get $element "name")) }}{{ $next = append $next $element }}{{ end }}
{{- end }}
{{- else }}
{{- if not (hasKey $parent $step) }}{{ $_ := set $parent $step dict }}{{ end }}
{{- $next = append $next (get $parent $step) }}
{{- end }}
{{- end }}
{{- $parents = $next }}
{{- end }}
{{- range $parent := $parents }}
{{- if eq $row.how "merge" }}
{{- if $value }}
{{- $merged := dict }}
{{- range $name, $each := default dict (get $parent $key) }}{{ $_ := set $merged $name $each }}{{ end }}
{{- range $name, $each := $value }}{{ $_ := set $merged $name $each }}{{ end }}
{{- $_ := set $parent $key $merged }}
{{- end }}
{{- else if eq $row.how "append" }}
{{- if $value }}{{ $_ := set $parent $key (concat (default list (get $parent $key)) $value) }}{{ end }}
{{- else if $value }}
{{- $_ := set $parent $key $value }}
{{- else }}
{{- $_ := unset $parent $key }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* The Pod Security level that the pods need. */ -}}
{{- define "fairlead.podSecurity" -}}
{{ or .Values.webhook.hostNetwork .Values.controller.hostNetwork | ternary "privileged" "restricted" }}
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

{{- /* The image of a pod. */ -}}
{{- define "fairlead.image" -}}
{{- $values := .root.Values }}
{{- $container := first .pod.containers }}
{{- if $values.image.digest }}
{{- $_ := set $container "image" (printf "%s@%s" $values.image.repository $values.image.digest) }}
{{- else }}
{{- $_ := set $container "image" (printf "%s:%s" $values.image.repository (default .root.Chart.AppVersion $values.image.tag)) }}
{{- end }}
{{- end }}

{{- /* What the programs are told beside the rows of files/places.yaml. */ -}}
{{- define "fairlead.deployment" -}}
{{- $values := .root.Values }}
{{- $name := .object.metadata.name }}
{{- $pod := .object.spec.template.spec }}
{{- $container := first $pod.containers }}
{{- include "fairlead.image" (dict "pod" $pod "root" .root) }}
{{- if and (eq $name "fairlead-webhook") $values.policyFiles }}
{{- $read := list }}
{{- range $container.args }}{{ $read = append $read (eq . "--policies-from-cluster" | ternary "--policies=/etc/fairlead/policies" .) }}{{ end }}
{{- $_ := set $container "args" $read }}
{{- $_ := set $container "volumeMounts" (append $container.volumeMounts (dict "name" "policies" "mountPath" "/etc/fairlead/policies" "readOnly" true)) }}
{{- $_ := set $pod "volumes" (append $pod.volumes (dict "name" "policies" "configMap" (dict "name" "fairlead-policies"))) }}
{{- else if eq $name "fairlead-controller" }}
{{- if eq $values.certificates "controller" }}{{ $_ := set $container "args" (append $container.args "--certificates") }}{{ end }}
{{- if $values.policyFiles }}{{ $_ := set $container "args" (append $container.args "--no-policy-status") }}{{ end }}
{{- end }}
{{- end }}

{{- /*
The entries of the chosen sources, once. Entries exclude each other: each earlier one gets the
negation of each mark that comes after it, so that a pod is sent once (docs/decisions/0024).
*/ -}}
{{- define "fairlead.entries" -}}
{{- $chosen := .root.Values.sources }}
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
{{- range $name, $annotation := $controller.metadata.annotations }}
{{- if not (hasPrefix "intercepts.fairlead.dev/" $name) }}{{ $_ := set $annotations $name $annotation }}{{ end }}
{{- end }}
{{- range $name, $kind := $recorded }}{{ $_ := set $annotations (printf "intercepts.fairlead.dev/%s" $name) $kind }}{{ end }}
{{- with .root.Values.webhookConfigurations.namespaceSelector }}
{{- $_ := set $annotations "fairlead.dev/intercepted-namespace-selector" (toJson .) }}
{{- end }}
{{- $_ := set $controller.metadata "annotations" $annotations }}
{{- end }}
