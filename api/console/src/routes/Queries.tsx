import { Anchor, Button, Group, Text, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { api, dataOf } from "../api/client";
import { figuresOf, noteOf, rate, span } from "../api/figures";
import { quoted } from "../api/names";
import { PAGE_SIZE, usePages } from "../api/pages";
import type { Schemas } from "../api/problem";
import { STATES } from "../api/queries";
import { usePoll } from "../events/useFeed";
import { BEHIND } from "../lineage/graph";
import { Choice } from "../parts/Filter";
import { Empty, Page } from "../parts/Page";
import { type Column, PagedRows } from "../parts/Rows";
import { State } from "../parts/State";
import { age, localTime } from "../parts/time";

type Query = Schemas["QueryView"];
const POLL_MS = 5_000;
const APPLICATIONS = 200;

const COLUMNS: Column<Query>[] = [
  {
    head: "Query",
    width: 230,
    cell: (query) => (
      <>
        <Anchor
          component={Link}
          to="/queries/$query"
          params={{ query: quoted(query.name) } as never}
          size="sm"
          className="what"
          title={query.name}
        >
          {query.name}
        </Anchor>
        <Text size="xs" c="dimmed" visibleFrom="sm" maw={210} truncate title={query.sink}>
          {`→ ${query.sink}`}
        </Text>
      </>
    ),
  },
  {
    head: "State",
    width: 110,
    cell: ({ status }) => (
      <>
        <State state={status.state} />
        {status.since && (
          <Text size="xs" c="dimmed" title={localTime(status.since)}>
            for {age(status.since)}
          </Text>
        )}
      </>
    ),
  },
  { head: "Read/s", width: 90, cell: (query) => shown(figuresOf(query).read, rate) },
  { head: "Written/s", width: 95, cell: (query) => shown(figuresOf(query).written, rate) },
  { head: "Lag", width: 90, cell: (query) => <Lag query={query} /> },
  { head: "Progress", width: 100, cell: (query) => shown(figuresOf(query).age, (seconds) => `${span(seconds)} ago`) },
  { head: "Restarts", width: 85, cell: ({ status }) => status.restarts },
  {
    head: "Note",
    cell: (query) => (
      <Text size="sm" lineClamp={2}>
        {noteOf(query)}
      </Text>
    ),
  },
];

const shown = (value: number | undefined, write: (value: number) => string): string =>
  value === undefined ? "" : write(value);

/** Records left to read; many are marked. */
function Lag({ query }: { query: Query }): ReactNode {
  const { lag } = figuresOf(query);
  if (lag === undefined) return null;
  const text = lag.toLocaleString("en-US");
  return lag > BEHIND ? <span className="soon">{text}</span> : text;
}

/** All queries, newest state first to see. */
export function Queries(): ReactNode {
  const { state, q, application } = useSearch({ from: "/inside/queries" });
  const navigate = useNavigate({ from: "/queries" });
  const known = STATES.find((one) => one === state);
  const pages = usePages(
    ["queries", application, known],
    (token) => {
      const narrowed = { application, state: known, view: "brief" } as const;
      const params = { query: { ...narrowed, page_size: PAGE_SIZE, page_token: token } };
      return dataOf(api.GET("/v1/queries", { params }));
    },
    usePoll(POLL_MS, true),
  );
  // The server's own filter knows names only, not sources and sinks.
  const wanted = q?.toLowerCase() ?? "";
  const shows = ({ name, sink, sources }: Query): boolean =>
    wanted === "" || `${name} ${sink} ${sources.join(" ")}`.toLowerCase().includes(wanted);
  return (
    <Page title="Queries" actions={<NewQuery />}>
      <Group gap="sm">
        <TextInput
          aria-label="Filter by name, source or sink"
          placeholder="Filter by name, source or sink"
          w={260}
          value={q ?? ""}
          onChange={(event) => {
            const value = event.currentTarget.value;
            void navigate({ search: (old) => ({ ...old, q: value || undefined }), replace: true });
          }}
        />
        <Choice
          label="State"
          values={STATES}
          value={known}
          change={(value) => void navigate({ search: (old) => ({ ...old, state: value }), replace: true })}
        />
        <OfApplication
          value={application}
          change={(value) => void navigate({ search: (old) => ({ ...old, application: value }), replace: true })}
        />
      </Group>
      <PagedRows
        label="Queries"
        columns={COLUMNS}
        pages={pages}
        shows={shows}
        keyOf={(query) => query.id}
        empty={
          <Empty title={nothing(known, application)}>
            <Text size="sm">
              A query is a statement that runs until it is stopped, such as CREATE STREAM … AS SELECT.
            </Text>
          </Empty>
        }
      />
    </Page>
  );
}

function nothing(state: string | undefined, application: string | undefined): string {
  if (state) return `No query${application ? ` of application ${application}` : ""} that you see is ${state}`;
  return application ? `Application ${application} has no query that you see` : "There is no query yet";
}

type ApplicationProps = { value: string | undefined; change: (value: string | undefined) => void };

/** The applications to choose from, if there are any. */
function OfApplication({ value, change }: ApplicationProps): ReactNode {
  const found = useQuery({
    queryKey: ["pages", "applications", "names"],
    queryFn: () => dataOf(api.GET("/v1/applications", { params: { query: { page_size: APPLICATIONS } } })),
    staleTime: 30_000,
  });
  const names = found.data?.items.map(({ name }) => quoted(name)) ?? [];
  const all = value === undefined || names.includes(value) ? names : [value, ...names];
  return all.length > 0 && <Choice label="Application" values={all} value={value} change={change} />;
}

function NewQuery(): ReactNode {
  return (
    <Button component={Link} to="/sql" size="xs">
      Write SQL
    </Button>
  );
}
