import { ActionIcon, Group, Text, UnstyledButton } from "@mantine/core";
import { IconChevronDown, IconChevronRight } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { api, dataOf } from "../api/client";
import { quoted, shortName } from "../api/names";
import type { Schemas } from "../api/problem";
import { Filter } from "../parts/Filter";
import { Problem } from "../parts/Problem";
import { Waiting } from "../parts/Rows";

type Relation = Schemas["RelationView"];
type Props = { insert: (name: string) => void };
const MOST = 100;

/** Relations by database and schema, with their columns. A click writes the name into the text. */
export function CatalogTree({ insert }: Props): ReactNode {
  const [q, setQ] = useState<string>();
  const found = useQuery({
    queryKey: ["names", "tree", q],
    queryFn: () => dataOf(api.GET("/v1/relations", { params: { query: { q, page_size: MOST } } })),
    placeholderData: (before) => before,
  });
  const items = found.data?.items ?? [];
  const places = Map.groupBy(items, ({ database, schema }) => `${database}.${schema}`);
  return (
    <nav className="names" aria-label="Catalog">
      <Filter label="Filter relations" value={q} change={setQ} />
      <div>
        {found.error && <Problem error={found.error} retry={() => void found.refetch()} />}
        {found.isPending && <Waiting />}
        {found.data && items.length === 0 && (
          <Text size="sm">{q ? "No relation has this in its name." : "There is no relation yet."}</Text>
        )}
        {[...places].map(([place, relations]) => (
          <div key={place}>
            <Text size="xs" c="dimmed" className="break">
              {place}
            </Text>
            {relations.map((relation) => (
              <One key={relation.id} relation={relation} insert={insert} />
            ))}
          </div>
        ))}
        {found.data?.next_page_token && <Text size="xs">The first {MOST}: filter to find others.</Text>}
      </div>
    </nav>
  );
}

function One({ relation, insert }: Props & { relation: Relation }): ReactNode {
  const [open, setOpen] = useState(false);
  const name = shortName(relation.fqn);
  const Icon = open ? IconChevronDown : IconChevronRight;
  return (
    <>
      <Group gap={2} wrap="nowrap">
        <ActionIcon
          size={24}
          variant="subtle"
          color="gray"
          aria-expanded={open}
          aria-label={`Columns of ${relation.fqn}`}
          onClick={() => setOpen(!open)}
        >
          <Icon size={14} aria-hidden />
        </ActionIcon>
        <UnstyledButton className="name" title={relation.fqn} onClick={() => insert(relation.fqn)}>
          <Text span size="sm">
            {name}
          </Text>
        </UnstyledButton>
      </Group>
      {open && (
        <ul className="columns">
          {relation.columns.map((column) => (
            <li key={column.name}>
              <UnstyledButton className="name" onClick={() => insert(quoted(column.name))}>
                <Text span size="xs">
                  {column.name}
                </Text>
                <Text span size="xs" c="dimmed">{` ${column.type}`}</Text>
              </UnstyledButton>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
