import { Group, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { api, dataOf } from "../api/client";
import { curl } from "../api/code";
import { PAGE_SIZE, type Pages, usePages } from "../api/pages";
import type { Schemas } from "../api/problem";
import { MOST_QUERIES } from "../api/queries";
import { usePoll } from "../events/useFeed";
import { AsCode } from "../parts/AsCode";
import { NameLink } from "../parts/Names";
import { Empty, Section } from "../parts/Page";
import { type Column, PagedRows, Rows } from "../parts/Rows";
import { State } from "../parts/State";
import { age, localTime } from "../parts/time";
import { bytes, type Driver, memoryOf, placeOf } from "./drivers";

const POLL_MS = 5_000;
const MOST_NAMES = 10;
const COLUMNS: Column<Driver>[] = [
  { head: "Driver", width: 150, cell: ({ id }) => <span className="mono">{id}</span> },
  {
    head: "State",
    width: 130,
    cell: ({ state, since }) => (
      <>
        <State state={state} />
        {since && (
          <Text size="xs" c="dimmed" title={localTime(since)}>
            for {age(since)}
          </Text>
        )}
      </>
    ),
  },
  { head: "Kind", width: 95, cell: ({ role }) => role },
  { head: "Memory", width: 170, cell: memoryOf },
  {
    head: "Heard",
    width: 100,
    cell: ({ heard_at }) => (heard_at ? <span title={localTime(heard_at)}>{age(heard_at)} ago</span> : "never"),
  },
  { head: "Runs", cell: (driver) => <Work driver={driver} /> },
  {
    head: "Process",
    width: 180,
    cell: (driver) => (
      <>
        {placeOf(driver)}
        <Text size="xs" c="dimmed" title={`Server ${driver.server ?? "unknown"}`}>
          {[driver.launcher, `${age(driver.created_at)} old`].filter(Boolean).join(", ")}
        </Text>
      </>
    ),
  },
];
const WAITING: Column<Schemas["QueryView"]>[] = [
  { head: "Query", cell: ({ name }) => <NameLink kind="query" name={name} /> },
  { head: "Waits for", cell: ({ status }) => status.message || "not known yet" },
];

/** The driver processes with what they run and use, and the queries that wait for one. */
export function Drivers(): ReactNode {
  // No event says what a driver does, so the feed does not make this poll rarer.
  const pages = usePages(
    ["drivers"],
    (token) => dataOf(api.GET("/v1/drivers", { params: { query: { page_size: PAGE_SIZE, page_token: token } } })),
    POLL_MS,
  );
  const forbidden = pages.error?.status === 403;
  return (
    <Stack gap="md">
      <Waiting />
      {forbidden ? (
        <Empty title="Your role does not see the drivers">
          <Text size="sm">
            That takes MONITOR on the organization. The page of a query names the driver that runs it.
          </Text>
        </Empty>
      ) : (
        <Section title="Drivers">
          <Sums pages={pages} />
          <PagedRows
            label="Drivers"
            columns={COLUMNS}
            pages={pages}
            keyOf={({ id }) => id}
            empty={
              <Empty title="No driver runs">
                <Text size="sm">The server starts drivers ahead of need, and for each query that needs one.</Text>
              </Empty>
            }
          />
        </Section>
      )}
      <Section title="As code">
        <AsCode forms={{ curl: curl("GET", "/v1/drivers"), leat: "leat driver list" }} />
      </Section>
    </Stack>
  );
}

function Work({ driver: { queries, selects, served } }: { driver: Driver }): ReactNode {
  const more = queries.length - MOST_NAMES;
  if (queries.length === 0) {
    const text = selects ? "an interactive SELECT" : "nothing";
    return <Text size="sm">{served > 0 ? `${text}; ${served} queries before` : text}</Text>;
  }
  return (
    <Group gap="sm">
      {queries.slice(0, MOST_NAMES).map(({ name, state, restarts }) => (
        <Group key={name} gap={6}>
          <NameLink kind="query" name={name} />
          {state !== "running" && <State state={state} />}
          {restarts > 0 && (
            <Text size="xs" c="dimmed">
              {restarts} restarts
            </Text>
          )}
        </Group>
      ))}
      {more > 0 && <Text size="sm">{`and ${more} more`}</Text>}
    </Group>
  );
}

function Sums({ pages: { items, hasMore } }: { pages: Pages<Driver> }): ReactNode {
  if (items.length === 0) return null;
  const counts = new Map<string, number>();
  for (const { state } of items) counts.set(state, (counts.get(state) ?? 0) + 1);
  const memory = items.reduce((sum, { memory_bytes }) => sum + (memory_bytes ?? 0), 0);
  return (
    <Group gap="md" mb={6} role="status" aria-label="Drivers by state">
      {[...counts].map(([state, count]) => (
        <Group gap={6} key={state}>
          <Text fw={700}>{count}</Text>
          <State state={state} />
        </Group>
      ))}
      {memory > 0 && <Text size="sm">{`${bytes(memory)} of memory${hasMore ? " in those shown" : ""}`}</Text>}
    </Group>
  );
}

function Waiting(): ReactNode {
  const given = { state: "pending", view: "brief", page_size: MOST_QUERIES } as const;
  const found = useQuery({
    queryKey: ["queries", "pending"],
    queryFn: () => dataOf(api.GET("/v1/queries", { params: { query: given } })),
    refetchInterval: usePoll(POLL_MS, true),
  });
  const waiting = found.data?.items.filter(({ status }) => status.desired_state === "running") ?? [];
  if (waiting.length === 0) return null;
  return (
    <Section title="Waiting for a driver">
      <Rows label="Waiting queries" columns={WAITING} items={waiting} keyOf={({ name }) => name} />
      {found.data?.next_page_token && <Text size="sm">Only the first {MOST_QUERIES} are shown.</Text>}
    </Section>
  );
}
