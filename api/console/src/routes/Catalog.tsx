import { Anchor, Button, Grid, NavLink, Text } from "@mantine/core";
import { Link, useSearch } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { api, dataOf } from "../api/client";
import { asText } from "../api/exact";
import { PAGE_SIZE, type Pages, usePages } from "../api/pages";
import type { Schemas } from "../api/problem";
import { Empty, Page } from "../parts/Page";
import { Problem } from "../parts/Problem";
import { type Column, PagedRows, Waiting } from "../parts/Rows";

type RelationView = Schemas["RelationView"];
const EXACT = { exact: true, includeSearch: true };

/** The topic or table of a relation, given or by default. */
export function entityOf({ topic, effective }: RelationView): string {
  return topic ?? asText((effective.topic ?? effective.table ?? effective.entity)?.value);
}

const COLUMNS: Column<RelationView>[] = [
  {
    head: "Relation",
    least: 220,
    cell: (relation) => (
      <Anchor
        component={Link}
        to="/relations/$relation"
        params={{ relation: relation.fqn } as never}
        size="sm"
        className="what"
        title={relation.fqn}
      >
        {relation.fqn}
      </Anchor>
    ),
  },
  { head: "Kind", width: 140, cell: (relation) => relation.kind.replace("_", " ") },
  { head: "Store", width: 140, cell: (relation) => relation.store },
  { head: "Entity", cell: (relation) => <Clamped text={entityOf(relation)} /> },
  { head: "Columns", width: 80, cell: (relation) => relation.columns.length },
];

/** A long name in two lines; its rest is in the title. */
function Clamped({ text }: { text: string }): ReactNode {
  return (
    <span className="what" title={text}>
      {text}
    </span>
  );
}

/** Databases and their schemas on the left, the relations of the chosen one beside. */
export function Catalog(): ReactNode {
  const { database, schema } = useSearch({ from: "/inside/catalog" });
  const databases = usePages(["databases"], (token) =>
    dataOf(api.GET("/v1/databases", { params: { query: { page_size: PAGE_SIZE, page_token: token } } })),
  );
  const relations = usePages(["relations", database, schema], (token) =>
    dataOf(
      api.GET("/v1/relations", { params: { query: { database, schema, page_size: PAGE_SIZE, page_token: token } } }),
    ),
  );
  const place = [database, schema].filter(Boolean).join(".");
  return (
    <Page
      title={place === "" ? "Catalog" : place}
      crumbs={place === "" ? [] : [{ label: "Catalog", to: "/catalog" }]}
    >
      <Grid gap="lg">
        <Grid.Col span={{ base: 12, sm: 3 }}>
          <nav aria-label="Databases">
            <Tree databases={databases} chosen={database} schema={schema} />
          </nav>
        </Grid.Col>
        <Grid.Col span={{ base: 12, sm: 9 }}>
          <PagedRows
            label="Relations"
            columns={COLUMNS}
            pages={relations}
            keyOf={(relation) => relation.id}
            empty={
              <Empty title={place === "" ? "There is no relation yet" : `${place} holds no relation`}>
                <Text size="sm">
                  Streams, changelogs, tables and materialized views are declared by SQL.{" "}
                  <Anchor
                    component={Link}
                    to="/sql"
                    search={{ database, schema } as never}
                    inherit
                    underline="always"
                  >
                    Write SQL
                  </Anchor>
                </Text>
              </Empty>
            }
          />
        </Grid.Col>
      </Grid>
    </Page>
  );
}

type TreeProps = { databases: Pages<Schemas["DatabaseView"]>; chosen?: string; schema?: string };

function Tree({ databases, chosen, schema }: TreeProps): ReactNode {
  if (databases.isPending) return <Waiting />;
  if (databases.error) return <Problem error={databases.error} retry={databases.reload} />;
  return (
    <>
      <NavLink
        className="place"
        component={Link}
        to="/catalog"
        activeOptions={EXACT}
        search={{} as never}
        label="All databases"
        active={!chosen}
      />
      {databases.items.map(({ id, name }) => (
        <NavLink
          key={id}
          className="place break"
          component={Link}
          to="/catalog"
          activeOptions={EXACT}
          search={{ database: name } as never}
          label={name}
          active={name === chosen && !schema}
          opened={name === chosen}
          childrenOffset={14}
        >
          {name === chosen ? <SchemasOf database={name} chosen={schema} /> : null}
        </NavLink>
      ))}
      {databases.items.length === 0 && (
        <Text size="sm" c="dimmed" p="xs">
          There is no database.
        </Text>
      )}
      <More pages={databases} />
    </>
  );
}

function SchemasOf({ database, chosen }: { database: string; chosen?: string }): ReactNode {
  const schemas = usePages(["schemas", database], (token) =>
    dataOf(
      api.GET("/v1/databases/{database}/schemas", {
        params: { path: { database }, query: { page_size: PAGE_SIZE, page_token: token } },
      }),
    ),
  );
  if (schemas.error) return <Problem error={schemas.error} retry={schemas.reload} />;
  return (
    <>
      {schemas.items.map(({ id, name }) => (
        <NavLink
          key={id}
          className="place break"
          component={Link}
          to="/catalog"
          activeOptions={EXACT}
          search={{ database, schema: name } as never}
          label={name}
          active={name === chosen}
        />
      ))}
      <More pages={schemas} />
    </>
  );
}

function More({ pages }: { pages: Pages<unknown> }): ReactNode {
  if (!pages.hasMore) return null;
  return (
    <Button size="compact-xs" variant="default" m={6} loading={pages.isLoadingMore} onClick={pages.loadMore}>
      Load more
    </Button>
  );
}
