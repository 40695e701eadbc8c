# Sourced by the steps. CONFIGURATION is the folder with the *.tf files; the first argument names the environment.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
environment=${1:?"Name the environment: dev, staging or prod"}
configuration=${CONFIGURATION:-$here/../terraform}
variables=$here/environments/$environment.tfvars
out=$(mkdir -p "${OUT:-out}" && cd "${OUT:-out}" && pwd)
[ -f "$variables" ] || { echo "There is no $variables." >&2; exit 2; }
: "${LEATSTREAM_URL:?"Set it to the address of the server"}" "${LEATSTREAM_TOKEN:?"Set it to an API token"}"

tf() { terraform -chdir="$configuration" "$@"; }
init() {
  backend=$here/environments/$environment.backend.hcl
  # With a backend: `terraform { backend "s3" {} }` in the configuration, and its settings in this file.
  if [ -f "$backend" ]; then tf init -input=false -reconfigure -backend-config="$backend"; else tf init -input=false; fi
}
