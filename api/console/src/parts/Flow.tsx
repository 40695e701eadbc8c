import { Anchor, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";
import { quoted, shortName } from "../api/names";
import type { Schemas } from "../api/problem";
import Graph, { type Arrow, type Card } from "./Graph";
import { State } from "./State";

type QueryView = Schemas["QueryView"];

/** Relations and the queries between them, from left to right. */
export default function Flow({ queries }: { queries: readonly QueryView[] }): ReactNode {
  const { cards, arrows } = useMemo(() => draw(queries), [queries]);
  return <Graph label="Graph of queries" cards={cards} arrows={arrows} />;
}

function QueryBody({ query }: { query: QueryView }): ReactNode {
  return (
    <>
      <Anchor
        component={Link}
        to="/queries/$query"
        params={{ query: quoted(query.name) } as never}
        title={query.name}
        size="sm"
        truncate
      >
        {query.name}
      </Anchor>
      <State state={query.status.state} />
    </>
  );
}

function RelationBody({ name, below }: { name: string; below: string }): ReactNode {
  return (
    <>
      <Anchor
        component={Link}
        to="/relations/$relation"
        params={{ relation: name } as never}
        aria-label={name}
        title={name}
        size="sm"
        truncate
      >
        {shortName(name)}
      </Anchor>
      <Text size="xs" c="dimmed" truncate title={below}>
        {below}
      </Text>
    </>
  );
}

function draw(queries: readonly QueryView[]): { cards: Card[]; arrows: Arrow[] } {
  const cards = new Map<string, Card>();
  const arrows = new Map<string, Arrow>();
  const connect = (from: string, to: string, state: string): void => {
    arrows.set(`${from}→${to}`, { from, to, moves: state === "running" });
  };
  const relation = (name: string, below: string): string => {
    const id = `relation ${name}`;
    // A sink's card says more than a source's: it knows the topic.
    if (!cards.has(id) || below.includes(" / ")) {
      cards.set(id, { id, kind: "relation", body: <RelationBody name={name} below={below} /> });
    }
    return id;
  };
  for (const query of queries) {
    const id = `query ${query.name}`;
    const { state } = query.status;
    cards.set(id, { id, kind: "query", state, body: <QueryBody query={query} /> });
    const stores = new Map(query.plan?.sources.map((source) => [source.fqn, source.store]));
    for (const source of query.sources) connect(relation(source, stores.get(source) ?? ""), id, state);
    const sink = query.plan?.sink;
    connect(id, relation(query.sink, sink ? `${sink.store} / ${sink.entity}` : ""), state);
  }
  return { cards: [...cards.values()], arrows: [...arrows.values()] };
}
