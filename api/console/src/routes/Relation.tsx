import { Anchor, Button, Grid, Group, Stack, Tabs } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { ObjectGrants } from "../access/ObjectGrants";
import { api, dataOf } from "../api/client";
import { curl } from "../api/code";
import { quoted } from "../api/names";
import type { Schemas } from "../api/problem";
import { ExportedCode } from "../parts/AsCode";
import { LineageButton } from "../parts/LineageButton";
import { Facts, Page, Section, Source } from "../parts/Page";
import { Problem } from "../parts/Problem";
import { Columns, Properties } from "../parts/Properties";
import { Waiting } from "../parts/Rows";
import { openText } from "../sql/drafts";
import { entityOf } from "./Catalog";
import { Sample } from "./Sample";

/** One stream, changelog, table or materialized view. */
export function Relation(): ReactNode {
  const { relation: fqn } = useParams({ from: "/inside/relations/$relation" });
  const found = useQuery({
    queryKey: ["relation", fqn],
    queryFn: () => dataOf(api.GET("/v1/relations/{relation}", { params: { path: { relation: fqn } } })),
  });
  const { tab } = useSearch({ from: "/inside/relations/$relation" });
  const change = useNavigate({ from: "/relations/$relation" });
  const navigate = useNavigate();
  const select = (): void => {
    openText(`SELECT * FROM ${fqn} LIMIT 100;`);
    void navigate({ to: "/sql" });
  };
  const view = found.data;
  const crumbs = [{ label: "Catalog", to: "/catalog" }];
  return (
    <Page
      title={fqn}
      crumbs={crumbs}
      actions={
        <>
          {view && <LineageButton root={`relation:${view.fqn}`} />}
          <Button size="xs" variant="default" onClick={select}>
            Select from it
          </Button>
        </>
      }
    >
      {found.isPending && <Waiting />}
      {found.error && <Problem error={found.error} retry={() => void found.refetch()} />}
      {view && (
        <Tabs
          value={tab === "sample" ? tab : "definition"}
          keepMounted={false}
          onChange={(value) => void change({ search: value === "sample" ? { tab: value } : {}, replace: true })}
        >
          <Tabs.List mb="sm">
            <Tabs.Tab value="definition">Definition</Tabs.Tab>
            <Tabs.Tab value="sample">Sample</Tabs.Tab>
          </Tabs.List>
          <Tabs.Panel value="definition">
            <Stack gap="md">
              <Details view={view} />
            </Stack>
          </Tabs.Panel>
          <Tabs.Panel value="sample">
            <Sample view={view} />
          </Tabs.Panel>
        </Tabs>
      )}
    </Page>
  );
}

// The API has no list of the queries of a relation: the first page of all is looked through.
function useUses(fqn: string): { writers: string[]; readers: string[] } {
  const found = useQuery({
    queryKey: ["flow"],
    queryFn: () => dataOf(api.GET("/v1/queries", { params: { query: { page_size: 100 } } })),
  });
  const queries = found.data?.items ?? [];
  return {
    writers: queries.filter(({ sink }) => sink === fqn).map(({ name }) => name),
    readers: queries.filter(({ sources }) => sources.includes(fqn)).map(({ name }) => name),
  };
}

function Details({ view }: { view: Schemas["RelationView"] }): ReactNode {
  const uses = useUses(view.fqn);
  return (
    <>
      <Facts
        facts={[
          ["Kind", view.kind.replace("_", " ")],
          ["Store", <Where key="store" view={view} />],
          ["Value format", view.value_format],
          ["Key", view.key_format && [view.key_format, view.key_type].filter(Boolean).join(", ")],
          ["Event time", view.timestamp],
          ["Written by", uses.writers.length > 0 && <QueriesOf key="writers" names={uses.writers} />],
          ["Read by", uses.readers.length > 0 && <QueriesOf key="readers" names={uses.readers} />],
          ["Owner", view.owner],
          ["Comment", view.comment],
        ]}
      />
      <Grid gap="lg">
        <Grid.Col span={{ base: 12, md: 6 }}>
          <Section title="Columns">
            <Columns columns={view.columns} keys={view.primary_key} />
          </Section>
        </Grid.Col>
        <Grid.Col span={{ base: 12, md: 6 }}>
          <Section title="Properties in force">
            <Properties effective={view.effective} />
          </Section>
        </Grid.Col>
      </Grid>
      <ObjectGrants on="relation" name={view.fqn} />
      <Section title="Statement">
        <Source text={view.statement} label="Statement" />
      </Section>
      <Section title="As code">
        <ExportedCode name={view.fqn} curl={curl("GET", `/v1/relations/${encodeURIComponent(view.fqn)}`)} />
      </Section>
    </>
  );
}

function Where({ view }: { view: Schemas["RelationView"] }): ReactNode {
  const entity = entityOf(view);
  return (
    <>
      <Anchor component={Link} to="/stores/$store" params={{ store: quoted(view.store) } as never} size="sm">
        {view.store}
      </Anchor>
      {entity !== "" && (
        <>
          {" / "}
          <Anchor
            component={Link}
            to="/stores/$store/entities/$entity"
            params={{ store: quoted(view.store), entity } as never}
            size="sm"
          >
            {entity}
          </Anchor>
        </>
      )}
    </>
  );
}

function QueriesOf({ names }: { names: readonly string[] }): ReactNode {
  return (
    <Group gap="sm">
      {names.map((query) => (
        <Anchor
          key={query}
          component={Link}
          to="/queries/$query"
          params={{ query: quoted(query) } as never}
          size="sm"
        >
          {query}
        </Anchor>
      ))}
    </Group>
  );
}
