import { Button, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { api, dataOf } from "../api/client";
import { lagOf, noteOf } from "../api/figures";
import { quoted } from "../api/names";
import type { Schemas } from "../api/problem";
import { usePoll } from "../events/useFeed";
import { NameLink } from "../parts/Names";
import { Section, Source } from "../parts/Page";
import { Problem } from "../parts/Problem";
import { type Column, Rows, Waiting } from "../parts/Rows";
import { State } from "../parts/State";

type View = Schemas["ApplicationView"];
type QueryView = Schemas["QueryView"];
type Member = Schemas["MemberStatusView"] & { query: QueryView | undefined; job: string | undefined };
const POLL_MS = 10_000;
// Each is a request: of a larger application the others show their state only.
const READ = 25;
const TAIL = 200;

const COLUMNS: Column<Member>[] = [
  { head: "Query", cell: ({ name }) => <NameLink kind="query" name={name} /> },
  { head: "State", width: 110, cell: ({ state }) => <State state={state} /> },
  { head: "Version", width: 80, cell: ({ query }) => query?.generation },
  { head: "Lag", width: 110, cell: ({ query }) => query && lagOf(query)?.toLocaleString("en-US") },
  { head: "Writes", cell: ({ query }) => query?.sink },
  { head: "Job", width: 150, cell: ({ name, job }) => (job && job !== name ? `part of ${job}` : "its own") },
  {
    head: "Note",
    cell: ({ message, query }) => (
      <Text size="sm" lineClamp={2}>
        {(query && noteOf(query)) ?? message}
      </Text>
    ),
  },
];

/** The queries of an application, each with its state and what it has left to read. */
export function Members({ view }: { view: View }): ReactNode {
  const names = view.queries.slice(0, READ);
  const found = useQuery({
    queryKey: ["application-members", ...names],
    queryFn: () =>
      Promise.all(
        names.map((name) => dataOf(api.GET("/v1/queries/{query}", { params: { path: { query: quoted(name) } } }))),
      ),
    refetchInterval: usePoll(POLL_MS, true),
  });
  const queries = new Map(found.data?.map((query) => [query.name, query]));
  const jobs = new Map(view.plan?.queries?.map(({ name, job }) => [name, job ?? undefined]));
  const items = view.status.queries.map((one) => ({ ...one, query: queries.get(one.name), job: jobs.get(one.name) }));
  return (
    <>
      {found.error && <Problem error={found.error} title="Lag and versions could not be read" />}
      <Rows label="Queries" columns={COLUMNS} items={items} keyOf={({ name }) => name} />
      {view.queries.length > READ && <Text size="sm">Lag and versions are those of the first {READ}.</Text>}
    </>
  );
}

type Done = Schemas["ApplicationQueryPlan"];
/** What a version does to each query. */
export const CHANGES: Column<Done>[] = [
  { head: "Query", cell: ({ name }) => name },
  { head: "Action", width: 90, cell: ({ action }) => action },
  { head: "Change", width: 160, cell: ({ plan }) => plan.change?.class },
  { head: "Reason", cell: ({ plan }) => plan.change?.reason },
];

/** What the newest version of an application did to its queries. */
export function Newest({ view: { plan, generation } }: { view: View }): ReactNode {
  if (!plan?.queries?.length) return null;
  return (
    <Section title={`What version ${generation} did`}>
      <Rows label="Changes" columns={CHANGES} items={plan.queries} keyOf={({ name }) => name} />
      {!!plan.removed?.length && <Text size="sm">Removed: {plan.removed?.join(", ")}</Text>}
    </Section>
  );
}

/** The last log lines of its queries: of those that failed if any has. */
export function Logs({ name }: { name: string }): ReactNode {
  const [opened, setOpened] = useState(false);
  const found = useQuery({
    queryKey: ["application-log", name],
    queryFn: () =>
      dataOf(
        api.GET("/v1/applications/{application}/logs", {
          params: { path: { application: quoted(name) }, query: { tail: TAIL } },
        }),
      ),
    enabled: opened,
  });
  return (
    <Section title="Log">
      <Button size="xs" variant="default" mb="xs" onClick={() => (opened ? void found.refetch() : setOpened(true))}>
        {opened ? "Read again" : "Show the last lines"}
      </Button>
      {opened && found.isPending && <Waiting />}
      {found.error && <Problem error={found.error} />}
      {found.data && <Source text={found.data.lines.join("\n") || "There is no line yet."} label="Log" />}
    </Section>
  );
}
