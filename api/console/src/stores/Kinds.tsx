import { Paper, SimpleGrid, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useCapabilities } from "../api/capabilities";
import type { Schemas } from "../api/problem";
import type { Field } from "./fields";

type Capabilities = Schemas["CapabilitiesView"];

/** The kinds of stores, and what each can be used for. */
export function Kinds({ kinds }: { kinds: readonly Field[] }): ReactNode {
  const found = useCapabilities();
  return (
    <SimpleGrid component="ul" cols={{ base: 1, sm: 2, lg: 3 }} spacing="sm" className="kinds">
      {kinds.map(({ name, help }) => (
        <li key={name}>
          <Paper component={Link} to="/new-store" search={{ kind: name } as never} withBorder p="sm" className="kind">
            <Text fw={600}>{name}</Text>
            <Text size="sm">{help}</Text>
            <Text size="xs" c="dimmed">
              {uses(found.data?.items.find(({ kind }) => kind === name))}
            </Text>
          </Paper>
        </li>
      ))}
    </SimpleGrid>
  );
}

/** What a kind can be used for, in one line. */
export function uses(of: Capabilities | undefined): string {
  if (!of) return "";
  if (!of.built) return "not in this version";
  const words = [
    of.source && "source",
    of.sink && "sink",
    of.cdc && "changes of tables",
    of.lookup && "lookups",
    of.view && "materialized views",
    of.unverified && "experimental",
  ];
  return words.filter(Boolean).join(" · ");
}
