import{r as e}from"./rolldown-runtime-XKyaHtl9.js";import{n as t}from"./link-D5R0p2Hl.js";import{H as n,n as r,t as i}from"./client-7SsfWAGm.js";import{t as a}from"./Tabs-rt80HYya.js";import{T as o}from"./matchContext-DzcpG9Mf.js";import{_ as s,c,g as l,h as u,l as d,m as f,p,u as m,v as h,x as g,y as _}from"./index-TO_DqUKN.js";import{p as v}from"./session-CLT7PIpO.js";import{n as y,t as b}from"./Names-CSy1AbxM.js";import{t as x}from"./jsx-runtime-LKYXHABd.js";import{i as S,r as C,t as w}from"./AsCode-h1gUvxYU.js";var T=e(v(),1),E=[`starting`,`running`,`stopping`];function D(e){let t=new Map;for(let{name:n,status:r,plan:i}of e){let{job:e,state:a,metrics:o}=r;if(!e?.driver_id||!E.includes(a))continue;let s=t.get(e.driver_id),c=typeof o.memory_bytes==`number`?o.memory_bytes:void 0;t.set(e.driver_id,{id:e.driver_id,pid:e.pid??s?.pid,mode:i?.driver??s?.mode??`dedicated`,memory:Math.max(c??0,s?.memory??0)||void 0,queries:[...s?.queries??[],n]})}return[...t.values()]}function O(e){return e.filter(({status:e})=>e.state===`pending`&&e.desired_state===`running`).map(({name:e,status:t})=>({name:e,message:t.message??``}))}function k(e){let t=e/1048576;return t<1024?`${Math.round(t)} MiB`:`${(t/1024).toFixed(1)} GiB`}var A=x(),j=5e3,M=500,N=[{head:`Driver`,width:150,cell:({id:e})=>(0,A.jsx)(`span`,{className:`mono`,children:e})},{head:`Kind`,width:100,cell:({mode:e})=>e},{head:`Process`,width:90,cell:({pid:e})=>e},{head:`Memory`,width:100,cell:({memory:e})=>e!==void 0&&k(e)},{head:`Runs`,cell:({queries:e})=>(0,A.jsx)(y,{kind:`query`,names:e,most:10})}],P=[{head:`Query`,cell:({name:e})=>(0,A.jsx)(b,{kind:`query`,name:e})},{head:`Waits for`,cell:({message:e})=>e||`not known yet`}];function F(){let e=g({queryKey:[`about`,`queries`],queryFn:()=>r(i.GET(`/v1/queries`,{params:{query:{page_size:M}}})),refetchInterval:j});if(e.error)return(0,A.jsx)(m,{error:e.error,retry:()=>void e.refetch()});if(!e.data)return(0,A.jsx)(d,{});let t=D(e.data.items),a=O(e.data.items),u=t.reduce((e,t)=>e+(t.memory??0),0);return(0,A.jsxs)(n,{gap:`md`,children:[(0,A.jsxs)(o,{size:`sm`,children:[`Drivers that run queries: ${t.length}${u>0?`, with ${k(u)} of memory`:``}. `,`Queries that wait to start: ${a.length}. Queries that your role does not see are left out.`]}),e.data.next_page_token&&(0,A.jsxs)(o,{size:`sm`,children:[`Only the first `,M,` queries were looked at.`]}),a.length>0&&(0,A.jsx)(l,{title:`Waiting`,children:(0,A.jsx)(c,{label:`Waiting queries`,columns:P,items:a,keyOf:({name:e})=>e})}),t.length>0?(0,A.jsx)(l,{title:`Drivers`,children:(0,A.jsx)(c,{label:`Drivers`,columns:N,items:t,keyOf:({id:e})=>e})}):(0,A.jsxs)(p,{title:`No driver runs a query`,children:[(0,A.jsx)(o,{size:`sm`,mb:`xs`,children:`A query that runs has a driver, alone or together with others. See what queries do:`}),(0,A.jsx)(s,{text:`leat query top`,label:`Command`})]})]})}function I(e){let{host:t}=new URL(e);return{leat:`export LEATSTREAM_URL=${e}
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
      - targets: ["${t}"]`}}var L={server:[`Server`,z],drivers:[`Drivers`,F],stores:[`Store kinds`,H],connect:[`Connect`,U]};function R(){let{tab:e=`server`}=_({from:`/inside/about`}),t=h({from:`/about`});return(0,A.jsx)(u,{title:`About`,children:(0,A.jsxs)(a,{value:e in L?e:`server`,keepMounted:!1,onChange:e=>void t({search:{tab:e??void 0},replace:!0}),children:[(0,A.jsx)(a.List,{mb:`sm`,children:Object.entries(L).map(([e,[t]])=>(0,A.jsx)(a.Tab,{value:e,children:t},e))}),Object.entries(L).map(([e,[,t]])=>(0,A.jsx)(a.Panel,{value:e,children:(0,A.jsx)(t,{})},e))]})})}function z(){let e=g({queryKey:[`server`],queryFn:()=>r(i.GET(`/v1/server`))});if(e.error)return(0,A.jsx)(m,{error:e.error,retry:()=>void e.refetch()});if(!e.data)return(0,A.jsx)(d,{});let{name:a,version:o,api_version:s,features:c,capabilities:u}=e.data;return(0,A.jsxs)(n,{gap:`md`,children:[(0,A.jsx)(f,{facts:[[`Product`,a],[`Version`,o],[`API`,s],[`Address`,window.location.origin],[`Features`,c.join(`, `)],[`Store kinds`,Object.keys(u).join(`, `)],[`Contract`,(0,A.jsx)(t,{href:`/openapi.json`,size:`sm`,children:`openapi.json`},`contract`)]]}),(0,A.jsx)(l,{title:`As code`,children:(0,A.jsx)(w,{forms:{curl:S(`GET`,`/v1/server`),leat:`leat server`}})})]})}var B=e=>e?`yes`:`no`,V=[{head:`Kind`,width:110,cell:({kind:e})=>e},{head:`Source`,width:80,cell:({source:e})=>B(e)},{head:`Sink`,width:70,cell:({sink:e})=>B(e)},{head:`Changes`,width:90,cell:({cdc:e})=>B(e)},{head:`Views`,width:70,cell:({view:e})=>B(e)},{head:`Delivery`,width:160,cell:({delivery:e})=>e.map(({name:e})=>e.replaceAll(`_`,` `)).join(`, `)},{head:`Note`,cell:({built:e,unverified:t,verified_on:n})=>e?t?`experimental: ${t}`:n:`not in this version`}];function H(){let e=g({queryKey:[`about`,`capabilities`],queryFn:()=>r(i.GET(`/v1/server/capabilities`)),staleTime:1/0});return e.error?(0,A.jsx)(m,{error:e.error,retry:()=>void e.refetch()}):e.data?(0,A.jsxs)(n,{gap:`sm`,children:[(0,A.jsx)(c,{label:`Store kinds`,columns:V,items:e.data.items,keyOf:({kind:e})=>e}),(0,A.jsx)(w,{forms:{curl:S(`GET`,`/v1/server/capabilities`),leat:`leat capabilities`}})]}):(0,A.jsx)(d,{})}function U(){let e=I(window.location.origin),[t,r]=(0,T.useState)(`leat`);return(0,A.jsxs)(n,{gap:`sm`,children:[(0,A.jsx)(o,{size:`sm`,children:`No snippet holds a token. Make one for each program under Access, and keep it in a file or in the environment.`}),(0,A.jsxs)(a,{value:t,onChange:e=>r(e??`leat`),variant:`pills`,keepMounted:!1,children:[(0,A.jsx)(a.List,{mb:`sm`,children:Object.keys(e).map(e=>(0,A.jsx)(a.Tab,{value:e,children:e},e))}),Object.entries(e).map(([e,t])=>(0,A.jsx)(a.Panel,{value:e,children:(0,A.jsxs)(n,{gap:`xs`,children:[(0,A.jsx)(s,{text:t,label:e}),(0,A.jsx)(`span`,{children:(0,A.jsx)(C,{text:t})})]})},e))]})]})}export{R as About};