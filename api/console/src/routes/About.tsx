import { Anchor, Stack, Tabs, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { Drivers } from "../about/Drivers";
import { snippets } from "../about/snippets";
import { useCapabilities } from "../api/capabilities";
import { api, dataOf } from "../api/client";
import { curl } from "../api/code";
import type { Schemas } from "../api/problem";
import { AsCode } from "../parts/AsCode";
import { Copy } from "../parts/Copy";
import { Facts, Page, Section, Source } from "../parts/Page";
import { type Panels, PanelTabs } from "../parts/Panels";
import { Problem } from "../parts/Problem";
import { type Column, Rows, Waiting } from "../parts/Rows";

type Kind = Schemas["CapabilitiesView"];
const PANELS: Panels = {
  server: ["Server", Server],
  drivers: ["Drivers", Drivers],
  stores: ["Store kinds", StoreKinds],
  connect: ["Connect", Connect],
};

/** What this server is, what it runs, and how to reach it from elsewhere. */
export function About(): ReactNode {
  const { tab } = useSearch({ from: "/inside/about" });
  const navigate = useNavigate({ from: "/about" });
  return (
    <Page title="About">
      <PanelTabs
        panels={PANELS}
        chosen={tab}
        first="server"
        choose={(value) => void navigate({ search: { tab: value }, replace: true })}
      />
    </Page>
  );
}

function Server(): ReactNode {
  const found = useQuery({ queryKey: ["server"], queryFn: () => dataOf(api.GET("/v1/server")) });
  if (found.error) return <Problem error={found.error} retry={() => void found.refetch()} />;
  if (!found.data) return <Waiting />;
  const { name, version, api_version, features, capabilities } = found.data;
  return (
    <Stack gap="md">
      <Facts
        facts={[
          ["Product", name],
          ["Version", version],
          ["API", api_version],
          ["Address", window.location.origin],
          ["Features", features.join(", ")],
          ["Store kinds", Object.keys(capabilities).join(", ")],
          [
            "Contract",
            <Anchor key="contract" href="/openapi.json" size="sm">
              openapi.json
            </Anchor>,
          ],
        ]}
      />
      <Section title="As code">
        <AsCode forms={{ curl: curl("GET", "/v1/server"), leat: "leat server" }} />
      </Section>
    </Stack>
  );
}

const yes = (value: boolean): string => (value ? "yes" : "no");
const KINDS: Column<Kind>[] = [
  { head: "Kind", width: 110, cell: ({ kind }) => kind },
  { head: "Source", width: 80, cell: ({ source }) => yes(source) },
  { head: "Sink", width: 70, cell: ({ sink }) => yes(sink) },
  { head: "Changes", width: 90, cell: ({ cdc }) => yes(cdc) },
  { head: "Views", width: 70, cell: ({ view }) => yes(view) },
  {
    head: "Delivery",
    width: 160,
    cell: ({ delivery }) => delivery.map(({ name }) => name.replaceAll("_", " ")).join(", "),
  },
  {
    head: "Note",
    cell: ({ built, unverified, verified_on }) =>
      !built ? "not in this version" : unverified ? `experimental: ${unverified}` : verified_on,
  },
];

function StoreKinds(): ReactNode {
  const found = useCapabilities();
  if (found.error) return <Problem error={found.error} retry={() => void found.refetch()} />;
  if (!found.data) return <Waiting />;
  return (
    <Stack gap="sm">
      <Rows label="Store kinds" columns={KINDS} items={found.data.items} keyOf={({ kind }) => kind} />
      <AsCode forms={{ curl: curl("GET", "/v1/server/capabilities"), leat: "leat capabilities" }} />
    </Stack>
  );
}

function Connect(): ReactNode {
  const all = snippets(window.location.origin);
  const [shown, show] = useState("leat");
  return (
    <Stack gap="sm">
      <Text size="sm">
        No snippet holds a token. Make one for each program under Access, and keep it in a file or in the environment.
      </Text>
      <Tabs value={shown} onChange={(value) => show(value ?? "leat")} variant="pills" keepMounted={false}>
        <Tabs.List mb="sm">
          {Object.keys(all).map((name) => (
            <Tabs.Tab key={name} value={name}>
              {name}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {Object.entries(all).map(([name, text]) => (
          <Tabs.Panel key={name} value={name}>
            <Stack gap="xs">
              <Source text={text} label={name} />
              <span>
                <Copy text={text} />
              </span>
            </Stack>
          </Tabs.Panel>
        ))}
      </Tabs>
    </Stack>
  );
}
