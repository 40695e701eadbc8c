import { Anchor, Button, Group, Select, Stack, Text } from "@mantine/core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { ObjectGrants } from "../access/ObjectGrants";
import { api, dataOf } from "../api/client";
import { curl, pathOf, shell } from "../api/code";
import { quoted } from "../api/names";
import { PAGE_SIZE, usePages } from "../api/pages";
import type { Schemas } from "../api/problem";
import { ExportedCode } from "../parts/AsCode";
import { Confirm } from "../parts/Confirm";
import { Copy } from "../parts/Copy";
import { Filter } from "../parts/Filter";
import { Empty, Facts, Page, Section, Source } from "../parts/Page";
import { Problem } from "../parts/Problem";
import { type Column, PagedRows, Waiting } from "../parts/Rows";
import { State } from "../parts/State";

type View = Schemas["SchemaRegistryView"];

/** One schema registry: whether it answers, its subjects, and the schema of one of them. */
export function Registry(): ReactNode {
  const { registry: name } = useParams({ from: "/inside/schema-registries/$registry" });
  const { subject } = useSearch({ from: "/inside/schema-registries/$registry" });
  const path = { params: { path: { registry: name } } };
  const found = useQuery({
    queryKey: ["registry", name],
    queryFn: () => dataOf(api.GET("/v1/schema-registries/{registry}", path)),
  });
  const test = useMutation({
    mutationFn: () => dataOf(api.POST("/v1/schema-registries/{registry}:test", path)),
  });
  const view = found.data;
  return (
    <Page
      title={name}
      crumbs={[{ label: "Schema registries", to: "/schema-registries" }]}
      beside={test.data && <State state={test.data.ready ? "ready" : "errored"} />}
      actions={
        <>
          <Button size="compact-sm" variant="default" loading={test.isPending} onClick={() => test.mutate()}>
            Test the connection
          </Button>
          {view && <Delete view={view} />}
        </>
      }
    >
      {test.error && <Problem error={test.error} title="The test could not be made" />}
      {test.data && (
        <Text size="sm" role="status">
          {test.data.ready ? "The registry answers." : test.data.message}
        </Text>
      )}
      {found.isPending && <Waiting />}
      {found.error && <Problem error={found.error} retry={() => void found.refetch()} />}
      {view && <Details view={view} />}
      {view && <Subjects registry={name} />}
      {view && subject !== undefined && <Subject key={subject} registry={name} subject={subject} />}
      {view && <ObjectGrants on="schema_registry" name={quoted(view.name)} />}
      {view && (
        <Section title="As code">
          <ExportedCode
            name={`schema_registry:${quoted(view.name)}`}
            curl={curl("GET", pathOf("schema-registries", view.name))}
          />
        </Section>
      )}
    </Page>
  );
}

function Details({ view }: { view: View }): ReactNode {
  return (
    <Facts
      facts={[
        ["Type", view.type],
        ["Addresses", view.uris],
        ["User", view.username],
        ["Secret of the password", view.password_secret],
        ["Certificate", view.ca_certificate && "of an authority of its own"],
        ["Owner", view.owner],
        ["Comment", view.comment],
      ]}
    />
  );
}

function Delete({ view }: { view: View }): ReactNode {
  const navigate = useNavigate();
  const name = quoted(view.name);
  return (
    <Confirm
      verb="Delete"
      of={`schema registry ${view.name}`}
      title={`Delete schema registry ${view.name}?`}
      consequence="leatstream forgets its address and its password. The registry itself keeps its schemas."
      forms={{
        sql: `DROP SCHEMA_REGISTRY ${name};`,
        curl: curl("DELETE", pathOf("schema-registries", view.name)),
        leat: `leat schema-registry delete ${shell(name)}`,
      }}
      call={() => api.DELETE("/v1/schema-registries/{registry}", { params: { path: { registry: name } } })}
      done={() => void navigate({ to: "/schema-registries" })}
    />
  );
}

function Subjects({ registry }: { registry: string }): ReactNode {
  const { q } = useSearch({ from: "/inside/schema-registries/$registry" });
  const navigate = useNavigate({ from: "/schema-registries/$registry" });
  const pages = usePages(["subjects", registry, q], (token) =>
    dataOf(
      api.GET("/v1/schema-registries/{registry}/subjects", {
        params: { path: { registry }, query: { page_size: PAGE_SIZE, page_token: token, q } },
      }),
    ),
  );
  const columns: Column<Schemas["SubjectView"]>[] = [
    {
      head: "Subject",
      cell: ({ name }) => (
        <Anchor
          component={Link}
          to="/schema-registries/$registry"
          params={{ registry } as never}
          search={{ q, subject: name } as never}
          size="sm"
          className="break"
        >
          {name}
        </Anchor>
      ),
    },
  ];
  return (
    <Section title="Subjects">
      <Stack gap="xs">
        <Filter
          label="Part of the name"
          value={q}
          change={(value) => void navigate({ search: (old) => ({ ...old, q: value }), replace: true })}
        />
        <PagedRows
          label="Subjects"
          columns={columns}
          pages={pages}
          keyOf={({ name }) => name}
          empty={
            <Empty title={q === undefined ? "The registry holds no subject" : "No subject has this in its name"}>
              <Text size="sm">A query that writes Avro, Protobuf or JSON Schema records registers their schema.</Text>
            </Empty>
          }
        />
      </Stack>
    </Section>
  );
}

function Subject({ registry, subject }: { registry: string; subject: string }): ReactNode {
  const { version = "latest" } = useSearch({ from: "/inside/schema-registries/$registry" });
  const navigate = useNavigate({ from: "/schema-registries/$registry" });
  const versions = usePages(["versions", registry, subject], (token) =>
    dataOf(
      api.GET("/v1/schema-registries/{registry}/subjects/{subject}/versions", {
        params: { path: { registry, subject }, query: { page_size: 1000, page_token: token } },
      }),
    ),
  );
  const found = useQuery({
    queryKey: ["schema", registry, subject, version],
    queryFn: () =>
      dataOf(
        api.GET("/v1/schema-registries/{registry}/subjects/{subject}/versions/{version}", {
          params: { path: { registry, subject, version } },
        }),
      ),
  });
  const numbers = versions.items.map((one) => String(one.version)).reverse();
  return (
    <Section title={`Schema of ${subject}`}>
      <Stack gap="xs">
        <Group gap="sm" align="flex-end">
          <Select
            label="Version"
            size="xs"
            w={120}
            data={numbers}
            value={found.data ? String(found.data.version) : null}
            onChange={(value) => void navigate({ search: (old) => ({ ...old, version: value ?? undefined }) })}
            allowDeselect={false}
          />
          {found.data && <Copy text={readable(found.data)} label="Copy the schema" />}
        </Group>
        {found.isPending && <Waiting />}
        {found.error && <Problem error={found.error} retry={() => void found.refetch()} />}
        {found.data && <Schema schema={found.data} />}
      </Stack>
    </Section>
  );
}

function Schema({ schema }: { schema: Schemas["RegisteredSchemaView"] }): ReactNode {
  const uses = schema.references.map((one) => `${one.name} (${one.subject}, version ${one.version})`);
  return (
    <>
      <Facts
        facts={[
          ["Type", schema.type],
          ["Id", schema.id],
          ["Uses", uses.join(", ")],
        ]}
      />
      <Source text={readable(schema)} label={`Schema of ${schema.subject}`} />
    </>
  );
}

/** JSON in lines; registries keep it in one. */
function readable({ type, text }: Schemas["RegisteredSchemaView"]): string {
  if (type === "PROTOBUF") return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
