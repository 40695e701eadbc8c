import { Anchor, Button, Text } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { ObjectGrants } from "../access/ObjectGrants";
import { api, dataOf } from "../api/client";
import { curl, pathOf } from "../api/code";
import { asText } from "../api/exact";
import { quoted } from "../api/names";
import { PAGE_SIZE, usePages } from "../api/pages";
import type { Schemas } from "../api/problem";
import { ExportedCode } from "../parts/AsCode";
import { LineageButton } from "../parts/LineageButton";
import { Empty, Facts, Page, Section } from "../parts/Page";
import { Problem } from "../parts/Problem";
import { type Column, PagedRows, Waiting } from "../parts/Rows";
import { State } from "../parts/State";
import { localTime } from "../parts/time";
import { labelOf } from "../stores/fields";

type StoreView = Schemas["StoreView"];
type Entity = Schemas["EntityView"];

/** One store: its settings, whether it answers, and what is in it. */
export function Store(): ReactNode {
  const { store: name } = useParams({ from: "/inside/stores/$store" });
  const client = useQueryClient();
  const path = { params: { path: { store: name } } };
  const store = useQuery({ queryKey: ["store", name], queryFn: () => dataOf(api.GET("/v1/stores/{store}", path)) });
  const test = useMutation({
    mutationFn: () => dataOf(api.POST("/v1/stores/{store}:test", path)),
    onSuccess: (found) => {
      client.setQueryData(["store", name], found);
      void client.invalidateQueries({ queryKey: ["pages", "entities", name] });
    },
  });
  return (
    <Page
      title={name}
      crumbs={[{ label: "Stores", to: "/stores" }]}
      beside={store.data && <State state={store.data.status.state} />}
      actions={
        <>
          {store.data && <LineageButton root={`store:${quoted(store.data.name)}`} />}
          <Button
            component={Link}
            to="/stores/$store/change"
            params={{ store: name } as never}
            size="xs"
            variant="default"
          >
            Change
          </Button>
          <Button size="xs" variant="default" loading={test.isPending} onClick={() => test.mutate()}>
            Test the connection
          </Button>
        </>
      }
    >
      {test.error && <Problem error={test.error} title="The test could not be made" />}
      {test.isSuccess && (
        <Text size="sm" role="status">
          Asked at {localTime(test.submittedAt)}: {test.data.status.state}.
        </Text>
      )}
      {store.error && <Problem error={store.error} retry={() => void store.refetch()} />}
      {store.isPending && <Waiting />}
      {store.data && <Details store={store.data} />}
      {store.data && <Entities store={name} />}
      {store.data && <ObjectGrants on="store" name={quoted(store.data.name)} />}
      {store.data && (
        <Section title="As code">
          <ExportedCode
            name={`store:${quoted(store.data.name)}`}
            curl={curl("GET", pathOf("stores", store.data.name))}
          />
        </Section>
      )}
    </Page>
  );
}

function Details({ store }: { store: StoreView }): ReactNode {
  const settings = (store[store.kind as keyof StoreView] ?? {}) as Record<string, unknown>;
  const given = Object.entries(settings).filter(([, value]) => value !== null);
  return (
    <Facts
      facts={[
        ["Kind", store.kind],
        ["Message", store.status.message],
        ...given.map(([key, value]) => [labelOf(key), asText(value)] as const),
        ["Schema registry", store.schema_registry],
        ...Object.entries(store.status.server ?? {}).map(([key, value]) => [`Server: ${key}`, value] as const),
        ["Owner", store.owner],
        ["Comment", store.comment],
      ]}
    />
  );
}

function Entities({ store }: { store: string }): ReactNode {
  const pages = usePages(["entities", store], (token) =>
    dataOf(
      api.GET("/v1/stores/{store}/entities", {
        params: { path: { store }, query: { page_size: PAGE_SIZE, page_token: token } },
      }),
    ),
  );
  const columns: Column<Entity>[] = [
    {
      head: "Entity",
      cell: (entity) => (
        <Anchor
          component={Link}
          to="/stores/$store/entities/$entity"
          params={{ store, entity: entity.name } as never}
          size="sm"
        >
          {entity.name}
        </Anchor>
      ),
    },
    { head: "Shape", cell: ({ effective }) => shape(effective) },
  ];
  return (
    <Section title="Entities">
      <PagedRows
        label="Entities"
        columns={columns}
        pages={pages}
        keyOf={(entity) => entity.name}
        empty={
          <Empty title="The store holds no topic, stream or table">
            <Text size="sm">A query creates the one that it writes.</Text>
          </Empty>
        }
      />
    </Section>
  );
}

/** What the store itself reports of an entity, in one line. */
export function shape(effective: Schemas["EntityEffective"]): string {
  return Object.entries(effective)
    .filter(([name, value]) => name !== "configs" && value !== null && value !== undefined)
    .map(([name, value]) =>
      typeof value === "number"
        ? `${value} ${value === 1 ? name.replace(/s$/, "") : name}`
        : `${name} ${asText(value)}`,
    )
    .join(", ");
}
