import { Anchor, Group, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { quoted } from "../api/names";

const PLACES = {
  query: "/queries/$query",
  store: "/stores/$store",
  function: "/functions/$function",
  secret: "/secrets/$secret",
  registry: "/schema-registries/$registry",
  application: "/applications/$application",
} as const;
type Kind = keyof typeof PLACES;

/** The way to an object's page. */
export function NameLink({ kind, name }: { kind: Kind; name: string }): ReactNode {
  return (
    <Anchor component={Link} to={PLACES[kind]} params={{ [kind]: quoted(name) } as never} size="sm" className="break">
      {name}
    </Anchor>
  );
}

type Props = { kind: Kind; names: readonly string[]; none?: string; most?: number };

/** The ways to several; of many the first. */
export function NameLinks({ kind, names, none = "", most = 1_000 }: Props): ReactNode {
  if (names.length === 0) return none;
  const more = names.length - most;
  return (
    <Group gap="sm">
      {names.slice(0, most).map((name) => (
        <NameLink key={name} kind={kind} name={name} />
      ))}
      {more > 0 && <Text size="sm">{`and ${more} more`}</Text>}
    </Group>
  );
}
