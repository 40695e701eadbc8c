import { Anchor, Autocomplete, Button, Group, List, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type FormEvent, type ReactNode, useEffect, useState } from "react";
import { api, dataOf } from "../api/client";
import { quoted } from "../api/names";
import { Empty } from "../parts/Page";
import { Problem } from "../parts/Problem";
import { Waiting } from "../parts/Rows";

const MOST = 8;
const PAUSE_MS = 300;

/** Ids of relations, queries and stores whose name holds a text. */
async function idsWith(q: string | undefined): Promise<string[]> {
  const params = { params: { query: { q, page_size: MOST } } };
  const [relations, queries, stores] = await Promise.all([
    dataOf(api.GET("/v1/relations", params)),
    dataOf(api.GET("/v1/queries", params)),
    dataOf(api.GET("/v1/stores", params)),
  ]);
  return [
    ...relations.items.map(({ fqn }) => `relation:${fqn}`),
    ...queries.items.map(({ name }) => `query:${quoted(name)}`),
    ...stores.items.map(({ name }) => `store:${quoted(name)}`),
  ];
}

function useIds(q: string, enabled: boolean): ReturnType<typeof useQuery<string[]>> {
  return useQuery({
    queryKey: ["lineage", "ids", q],
    queryFn: () => idsWith(q === "" ? undefined : q),
    enabled,
    staleTime: 30_000,
    placeholderData: (before) => before,
  });
}

/** A field for the object to look from: its name is searched for, or taken as it is written. */
export function Choose({ root, choose }: { root: string; choose: (root: string) => void }): ReactNode {
  const [text, setText] = useState(root);
  const [q] = useDebouncedValue(text.trim(), PAUSE_MS);
  useEffect(() => setText(root), [root]);
  const found = useIds(q, q !== "" && q !== root);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (text.trim() !== "") choose(text.trim());
  };
  return (
    <form onSubmit={submit} className="grow choose">
      <Group gap="xs" wrap="nowrap" align="flex-end">
        <Autocomplete
          label="Object"
          placeholder="Part of a name"
          className="grow"
          value={text}
          onChange={setText}
          onOptionSubmit={choose}
          data={found.data ?? []}
          filter={({ options }) => options}
          limit={3 * MOST}
          error={found.error?.message}
        />
        <Button type="submit" variant="default" className="whole">
          Show
        </Button>
      </Group>
    </form>
  );
}

/** What is shown before an object is chosen: some to begin with. */
export function Beginnings(): ReactNode {
  const found = useIds("", true);
  if (found.error) return <Problem error={found.error} retry={() => void found.refetch()} />;
  if (!found.data) return <Waiting />;
  if (found.data.length === 0) {
    return (
      <Empty title="There is nothing that records flow through yet">
        <Text size="sm">
          Declare a store, a stream over one of its topics, and a query that reads it.{" "}
          <Anchor component={Link} to="/new-store" inherit underline="always">
            Create a store
          </Anchor>
        </Text>
      </Empty>
    );
  }
  return (
    <Empty title="Choose an object">
      <Text size="sm" mb="xs">
        You see which stores, entities, relations and queries its records come from, and where they go. Search by
        name, write an entity as entity:store/topic, or begin with one of these:
      </Text>
      <List size="sm" listStyleType="none" spacing={8}>
        {found.data.map((id) => (
          <List.Item key={id} className="break">
            <Anchor component={Link} to="/lineage" search={{ root: id } as never} size="sm" underline="always">
              {id}
            </Anchor>
          </List.Item>
        ))}
      </List>
    </Empty>
  );
}
