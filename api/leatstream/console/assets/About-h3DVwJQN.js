import{r as e}from"./rolldown-runtime-XKyaHtl9.js";import{n as t}from"./link-CfXAPwpM.js";import{n,t as r,z as i}from"./client-k8AlNXYY.js";import{t as a}from"./Tabs-ByBNgV2g.js";import{T as o}from"./matchContext-BoXQc737.js";import{S as s,_ as c,c as l,g as u,h as d,l as f,m as p,p as m,r as h,u as g,v as _,y as v}from"./index-Cgoar7FV.js";import{n as y,t as b}from"./jsx-runtime-C3cWAN_r.js";import{n as x}from"./queries-B2mUVtdm.js";import{n as S,t as C}from"./Names-DhuqHMjR.js";import{i as w,r as T,t as E}from"./AsCode-DKXafSNt.js";import{t as D}from"./Panels-BCysVw8T.js";var O=e(y(),1),k=[`starting`,`running`,`stopping`];function A(e){let t=new Map;for(let{name:n,status:r,plan:i}of e){let{job:e,state:a,metrics:o}=r;if(!e?.driver_id||!k.includes(a))continue;let s=t.get(e.driver_id),c=typeof o.memory_bytes==`number`?o.memory_bytes:void 0;t.set(e.driver_id,{id:e.driver_id,pid:e.pid??s?.pid,mode:i?.driver??s?.mode??`dedicated`,memory:Math.max(c??0,s?.memory??0)||void 0,queries:[...s?.queries??[],n]})}return[...t.values()]}function j(e){return e.filter(({status:e})=>e.state===`pending`&&e.desired_state===`running`).map(({name:e,status:t})=>({name:e,message:t.message??``}))}function M(e){let t=e/1048576;return t<1024?`${Math.round(t)} MiB`:`${(t/1024).toFixed(1)} GiB`}var N=b(),P=5e3,F=[{head:`Driver`,width:150,cell:({id:e})=>(0,N.jsx)(`span`,{className:`mono`,children:e})},{head:`Kind`,width:100,cell:({mode:e})=>e},{head:`Process`,width:90,cell:({pid:e})=>e},{head:`Memory`,width:100,cell:({memory:e})=>e!==void 0&&M(e)},{head:`Runs`,cell:({queries:e})=>(0,N.jsx)(S,{kind:`query`,names:e,most:10})}],I=[{head:`Query`,cell:({name:e})=>(0,N.jsx)(C,{kind:`query`,name:e})},{head:`Waits for`,cell:({message:e})=>e||`not known yet`}];function L(){let e=x(h(P,!0));if(e.error)return(0,N.jsx)(g,{error:e.error,retry:()=>void e.refetch()});if(!e.data)return(0,N.jsx)(f,{});let t=A(e.data.items),n=j(e.data.items),r=t.reduce((e,t)=>e+(t.memory??0),0);return(0,N.jsxs)(i,{gap:`md`,children:[(0,N.jsxs)(o,{size:`sm`,children:[`Drivers that run queries: ${t.length}${r>0?`, with ${M(r)} of memory`:``}. `,`Queries that wait to start: ${n.length}. Queries that your role does not see are left out.`]}),e.data.next_page_token&&(0,N.jsxs)(o,{size:`sm`,children:[`Only the first `,500,` queries were looked at.`]}),n.length>0&&(0,N.jsx)(u,{title:`Waiting`,children:(0,N.jsx)(l,{label:`Waiting queries`,columns:I,items:n,keyOf:({name:e})=>e})}),t.length>0?(0,N.jsx)(u,{title:`Drivers`,children:(0,N.jsx)(l,{label:`Drivers`,columns:F,items:t,keyOf:({id:e})=>e})}):(0,N.jsxs)(m,{title:`No driver runs a query`,children:[(0,N.jsx)(o,{size:`sm`,mb:`xs`,children:`A query that runs has a driver, alone or together with others. See what queries do:`}),(0,N.jsx)(c,{text:`leat query top`,label:`Command`})]})]})}function R(e){let{host:t}=new URL(e);return{leat:`export LEATSTREAM_URL=${e}
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
      - targets: ["${t}"]`}}var z={server:[`Server`,V],drivers:[`Drivers`,L],stores:[`Store kinds`,W],connect:[`Connect`,G]};function B(){let{tab:e}=v({from:`/inside/about`}),t=_({from:`/about`});return(0,N.jsx)(d,{title:`About`,children:(0,N.jsx)(D,{panels:z,chosen:e,first:`server`,choose:e=>void t({search:{tab:e},replace:!0})})})}function V(){let e=s({queryKey:[`server`],queryFn:()=>n(r.GET(`/v1/server`))});if(e.error)return(0,N.jsx)(g,{error:e.error,retry:()=>void e.refetch()});if(!e.data)return(0,N.jsx)(f,{});let{name:a,version:o,api_version:c,features:l,capabilities:d}=e.data;return(0,N.jsxs)(i,{gap:`md`,children:[(0,N.jsx)(p,{facts:[[`Product`,a],[`Version`,o],[`API`,c],[`Address`,window.location.origin],[`Features`,l.join(`, `)],[`Store kinds`,Object.keys(d).join(`, `)],[`Contract`,(0,N.jsx)(t,{href:`/openapi.json`,size:`sm`,children:`openapi.json`},`contract`)]]}),(0,N.jsx)(u,{title:`As code`,children:(0,N.jsx)(E,{forms:{curl:w(`GET`,`/v1/server`),leat:`leat server`}})})]})}var H=e=>e?`yes`:`no`,U=[{head:`Kind`,width:110,cell:({kind:e})=>e},{head:`Source`,width:80,cell:({source:e})=>H(e)},{head:`Sink`,width:70,cell:({sink:e})=>H(e)},{head:`Changes`,width:90,cell:({cdc:e})=>H(e)},{head:`Views`,width:70,cell:({view:e})=>H(e)},{head:`Delivery`,width:160,cell:({delivery:e})=>e.map(({name:e})=>e.replaceAll(`_`,` `)).join(`, `)},{head:`Note`,cell:({built:e,unverified:t,verified_on:n})=>e?t?`experimental: ${t}`:n:`not in this version`}];function W(){let e=s({queryKey:[`about`,`capabilities`],queryFn:()=>n(r.GET(`/v1/server/capabilities`)),staleTime:1/0});return e.error?(0,N.jsx)(g,{error:e.error,retry:()=>void e.refetch()}):e.data?(0,N.jsxs)(i,{gap:`sm`,children:[(0,N.jsx)(l,{label:`Store kinds`,columns:U,items:e.data.items,keyOf:({kind:e})=>e}),(0,N.jsx)(E,{forms:{curl:w(`GET`,`/v1/server/capabilities`),leat:`leat capabilities`}})]}):(0,N.jsx)(f,{})}function G(){let e=R(window.location.origin),[t,n]=(0,O.useState)(`leat`);return(0,N.jsxs)(i,{gap:`sm`,children:[(0,N.jsx)(o,{size:`sm`,children:`No snippet holds a token. Make one for each program under Access, and keep it in a file or in the environment.`}),(0,N.jsxs)(a,{value:t,onChange:e=>n(e??`leat`),variant:`pills`,keepMounted:!1,children:[(0,N.jsx)(a.List,{mb:`sm`,children:Object.keys(e).map(e=>(0,N.jsx)(a.Tab,{value:e,children:e},e))}),Object.entries(e).map(([e,t])=>(0,N.jsx)(a.Panel,{value:e,children:(0,N.jsxs)(i,{gap:`xs`,children:[(0,N.jsx)(c,{text:t,label:e}),(0,N.jsx)(`span`,{children:(0,N.jsx)(T,{text:t})})]})},e))]})]})}export{B as About};