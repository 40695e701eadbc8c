function e(e){let{host:t}=new URL(e);return{leat:`export LEATSTREAM_URL=${e}
# With an identity provider:
leat login
# Or with an API token, in a file that only you can read:
export LEATSTREAM_TOKEN="$(cat token)"
leat whoami`,curl:`export URL=${e}
install -m 600 /dev/null auth.header
echo "Authorization: Bearer $LEATSTREAM_TOKEN" > auth.header
curl --fail-with-body -H @auth.header "$URL/v1/server"`,Terraform:`# leat terraform install puts the provider where Terraform looks for it.
# The token is in the environment: export LEATSTREAM_TOKEN="$(cat token)"
terraform {
  required_providers {
    leatstream = {
      source = "leatstream.dev/leatstream/leatstream"
    }
  }
}

provider "leatstream" {
  url = "${e}"
}`,CDKTF:`# The token is in the environment: export LEATSTREAM_TOKEN="$(cat token)"
from constructs import Construct

from leatstream_cdktf import Database, LeatstreamProvider, tf


class Demo(tf.TerraformStack):
    def __init__(self, scope: Construct, id_: str) -> None:
        super().__init__(scope, id_)
        LeatstreamProvider(self, "leatstream", url="${e}")
        Database(self, "demo")


app = tf.App()
Demo(app, "demo")
app.synth()`,GraphQL:`# auth.header is made as for curl.
curl --fail-with-body -H @auth.header "${e}/graphql" --json '{"query":
  "{ queries { items { name status { state message } } } }"}'`,Prometheus:`# The token needs the scope read and a role with MONITOR, such as reader.
# Grafana: import deploy/monitoring/grafana-dashboard.json over this data.
scrape_configs:
  - job_name: leatstream
    scheme: ${new URL(e).protocol.replace(`:`,``)}
    metrics_path: /metrics
    scrape_interval: 15s
    authorization:
      type: Bearer
      credentials_file: /etc/prometheus/leatstream-token
    static_configs:
      - targets: ["${t}"]`}}export{e as t};