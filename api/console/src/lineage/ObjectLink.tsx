import { Anchor } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { entityParts, shortName } from "../api/names";
import type { LineageNode } from "./graph";

/** The way to a node's page. `short` leaves out what stands beside it anyway. */
export function ObjectLink({
  node,
  short = false,
}: {
  node: Pick<LineageNode, "kind" | "name">;
  short?: boolean;
}): ReactNode {
  const { kind, name } = node;
  const look = {
    size: "sm",
    title: name,
    truncate: short || undefined,
    display: short ? ("block" as const) : undefined,
    "aria-label": short ? name : undefined,
  };
  if (kind === "query") {
    return (
      <Anchor component={Link} to="/queries/$query" params={{ query: name } as never} {...look}>
        {name}
      </Anchor>
    );
  }
  if (kind === "relation") {
    return (
      <Anchor component={Link} to="/relations/$relation" params={{ relation: name } as never} {...look}>
        {short ? shortName(name) : name}
      </Anchor>
    );
  }
  if (kind === "store") {
    return (
      <Anchor component={Link} to="/stores/$store" params={{ store: name } as never} {...look}>
        {name}
      </Anchor>
    );
  }
  const { store, entity } = entityParts(name);
  return (
    <Anchor component={Link} to="/stores/$store/entities/$entity" params={{ store, entity } as never} {...look}>
      {short ? entity : name}
    </Anchor>
  );
}
