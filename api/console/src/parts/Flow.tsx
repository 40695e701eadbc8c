import { Anchor, Text, VisuallyHidden } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";
import { type Figures, figuresOf, lagOf, rate, span } from "../api/figures";
import { quoted, shortName } from "../api/names";
import type { Schemas } from "../api/problem";
import { BEHIND } from "../lineage/graph";
import Graph, { type Arrow, type Card } from "./Graph";
import { State } from "./State";

type QueryView = Schemas["QueryView"];

type Props = {
  queries: readonly QueryView[];
  /** The relation whose records are looked at. */
  at: string | undefined;
  look: (relation: string) => void;
};

/** Relations and the queries between them, from left to right, with what moves along each arrow. */
export default function Flow({ queries, at, look }: Props): ReactNode {
  const { cards, arrows } = useMemo(() => draw(queries, at, look), [queries, at, look]);
  return <Graph label="Graph of queries" cards={cards} arrows={arrows} />;
}

type MovesProps = {
  relation: string;
  does: Figures;
  read: boolean;
  chosen: boolean;
  look: (relation: string) => void;
};

/** What moves along an arrow. Clicked, it shows the records that do. */
function Moves({ relation, does, read, chosen, look }: MovesProps): ReactNode {
  const rows = read ? does.read : does.written;
  const lag = read ? does.lag : undefined;
  const tone = does.waits ? "bad" : (lag ?? 0) > BEHIND ? "wait" : undefined;
  return (
    <button
      type="button"
      className="moves"
      data-tone={tone}
      aria-pressed={chosen}
      title={does.waits ?? `Show records of ${relation}`}
      onClick={() => look(relation)}
    >
      <VisuallyHidden>{`Records of ${relation}: `}</VisuallyHidden>
      {rows !== undefined && <span className="rows">{`${rate(rows)}/s `}</span>}
      {lag !== undefined && <span className="lag">{`lag ${lag.toLocaleString("en-US")} `}</span>}
      {does.age !== undefined && <span>{span(does.age)} ago</span>}
      {rows === undefined && lag === undefined && does.age === undefined && <span>records</span>}
    </button>
  );
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

function draw(
  queries: readonly QueryView[],
  at: string | undefined,
  look: (relation: string) => void,
): { cards: Card[]; arrows: Arrow[] } {
  const cards = new Map<string, Card>();
  const arrows = new Map<string, Arrow>();
  const connect = (from: string, to: string, relation: string, query: QueryView, read: boolean): void => {
    const all = figuresOf(query);
    const does = read ? { ...all, lag: all.lag === undefined ? undefined : lagOf(query, relation) } : all;
    const label = <Moves relation={relation} does={does} read={read} chosen={relation === at} look={look} />;
    arrows.set(`${from}→${to}`, { from, to, moves: query.status.state === "running", label });
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
    for (const source of query.sources) {
      connect(relation(source, stores.get(source) ?? ""), id, source, query, true);
    }
    const sink = query.plan?.sink;
    connect(id, relation(query.sink, sink ? `${sink.store} / ${sink.entity}` : ""), query.sink, query, false);
  }
  return { cards: [...cards.values()], arrows: [...arrows.values()] };
}
