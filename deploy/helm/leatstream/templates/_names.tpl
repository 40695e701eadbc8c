{{- define "leatstream.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "leatstream.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "leatstream.labels" -}}
{{ include "leatstream.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "leatstream.secret" -}}
{{- .Values.secret.existing | default (include "leatstream.name" .) -}}
{{- end -}}

{{- /* A value as an environment variable has it: Helm reads numbers as floats, and writes a million as 1e+06. */ -}}
{{- define "leatstream.value" -}}
{{- if kindIs "float64" . -}}
{{- if eq (floor .) . -}}{{ int64 . }}{{- else -}}{{ . }}{{- end -}}
{{- else if or (kindIs "map" .) (kindIs "slice" .) -}}
{{- toJson . -}}
{{- else -}}
{{- . -}}
{{- end -}}
{{- end -}}

{{- /* A heap as a server takes it: (list NAME VALUE). With another it would end at its start. */ -}}
{{- define "leatstream.heap" -}}
{{- $heapText := include "leatstream.value" (index . 1) -}}
{{- if not (regexMatch "^[1-9][0-9]*[kmgtKMGT]$" $heapText) -}}
{{- fail (printf "%s is %s, which is not a size as Spark writes it: write a whole number and k, m, g or t, such as 512m or 2g" (index . 0) $heapText) -}}
{{- end -}}
{{- $unit := dict "k" 0.0009765625 "m" 1.0 "g" 1024.0 "t" 1048576.0 -}}
{{- if lt (mulf (regexFind "^[0-9]+" $heapText | float64) (get $unit (regexFind "[A-Za-z]$" $heapText | lower))) 480.0 -}}
{{- fail (printf "%s is %s: Spark does not start with a heap of less than 480m" (index . 0) $heapText) -}}
{{- end -}}
{{- $heapText -}}
{{- end -}}

{{- /* Refuses a heap that the driver's pod has no room for: (list NAME HEAP NAME MEMORY). A driver needs 384 MiB beside it. */ -}}
{{- define "leatstream.fits" -}}
{{- $heap := dict "k" 0.0009765625 "m" 1.0 "g" 1024.0 "t" 1048576.0 -}}
{{- $pod := dict "Ki" 0.0009765625 "Mi" 1.0 "Gi" 1024.0 "Ti" 1048576.0 "" 0.00000095367431640625 "k" 0.00095367431640625 "M" 0.95367431640625 "G" 953.67431640625 "T" 953674.31640625 -}}
{{- $heapText := include "leatstream.heap" (list (index . 0) (index . 1)) -}}
{{- $podText := include "leatstream.value" (index . 3) -}}
{{- $podUnit := regexFind "[A-Za-z]*$" $podText -}}
{{- if not (and (regexMatch "^[0-9]+([.][0-9]+)?[A-Za-z]*$" $podText) (hasKey $pod $podUnit)) -}}
{{- fail (printf "%s is %s, which is not a size as a pod takes it: write a number and Ki, Mi, Gi, Ti, k, M, G or T, such as 1536Mi or 2Gi" (index . 2) $podText) -}}
{{- end -}}
{{- $wanted := addf (mulf (regexFind "^[0-9]+" $heapText | float64) (get $heap (regexFind "[A-Za-z]$" $heapText | lower))) 384.0 -}}
{{- if gt $wanted (mulf (regexFind "^[0-9.]+" $podText | float64) (get $pod $podUnit)) -}}
{{- fail (printf "%s is %s, which with the 384 MiB that a driver needs beside its heap is more than %s, %s: its pod would be killed" (index . 0) $heapText (index . 2) $podText) -}}
{{- end -}}
{{- end -}}
