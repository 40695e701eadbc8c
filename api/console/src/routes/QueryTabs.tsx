import { Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Fragment, lazy, type ReactNode, Suspense } from "react";
import { api, dataOf } from "../api/client";
import { asText } from "../api/exact";
import type { Schemas } from "../api/problem";
import { usePoll } from "../events/useFeed";
import { Diff } from "../parts/Diff";
import { Facts, Section, Source } from "../parts/Page";
import { Problem } from "../parts/Problem";
import { type Column, Rows, Waiting } from "../parts/Rows";
import { State } from "../parts/State";
import { localTime } from "../parts/time";

// The library of charts is for this tab alone.
const Charts = lazy(() => import("../charts/Charts"));
const POLL_MS = 5_000;
type Of = { query: string };

const EVENTS: Column<Schemas["QueryEventView"]>[] = [
  { head: "Time", width: 178, cell: (event) => localTime(event.at) },
  { head: "State", width: 110, cell: (event) => <State state={event.state} /> },
  { head: "Attempt", width: 80, cell: (event) => event.attempt },
  { head: "Version", width: 80, cell: (event) => event.generation },
  { head: "Reason", cell: (event) => event.error ?? event.reason },
];

/** Changes of the query's state, the newest first. */
export function Events({ query }: Of): ReactNode {
  const found = useQuery({
    queryKey: ["query", query, "events"],
    queryFn: () =>
      dataOf(api.GET("/v1/queries/{query}/events", { params: { path: { query }, query: { limit: 100 } } })),
    refetchInterval: usePoll(POLL_MS),
  });
  if (found.error) return <Problem error={found.error} retry={() => void found.refetch()} />;
  if (!found.data) return <Waiting />;
  if (found.data.items.length === 0) return <Text size="sm">Nothing has happened to it yet.</Text>;
  const items = [...found.data.items].sort((a, b) => b.at.localeCompare(a.at));
  return <Rows label="Events" columns={EVENTS} items={items} keyOf={(e) => `${e.at} ${e.state} ${e.attempt}`} />;
}

/** The statements that the query has had, the newest first, each with what it changed. */
export function Versions({ query }: Of): ReactNode {
  const found = useQuery({
    queryKey: ["query", query, "history"],
    queryFn: () => dataOf(api.GET("/v1/queries/{query}/history", { params: { path: { query } } })),
  });
  if (found.error) return <Problem error={found.error} retry={() => void found.refetch()} />;
  if (!found.data) return <Waiting />;
  const items = [...found.data.items].sort((a, b) => b.generation - a.generation);
  return (
    <Stack gap="md">
      {items.map((version, index) => (
        <Version key={version.generation} version={version} before={items[index + 1]} />
      ))}
    </Stack>
  );
}

type VersionProps = { version: Schemas["QueryVersionView"]; before: Schemas["QueryVersionView"] | undefined };

function Version({ version, before }: VersionProps): ReactNode {
  const { generation, at, by, sql, change, reason, desired_state } = version;
  const switched = before && before.desired_state !== desired_state && `now ${desired_state}`;
  return (
    <Section title={`Version ${generation}`}>
      <Text size="sm" mb={6}>
        {[`${localTime(at)} by ${by}`, switched, [change, reason].filter(Boolean).join(": ")]
          .filter(Boolean)
          .join(", ")}
      </Text>
      {before && before.sql !== sql ? (
        <Diff before={before.sql} after={sql} label={`Change to version ${generation}`} />
      ) : before ? (
        <Text size="sm" c="dimmed">
          The statement is that of version {before.generation}.
        </Text>
      ) : (
        <Source text={sql} label={`Statement of version ${generation}`} />
      )}
    </Section>
  );
}

/** How the figures of the job went, and those that it reports now. */
export function Metrics({ query, metrics }: Of & { metrics: Record<string, unknown> }): ReactNode {
  const now = Object.entries(metrics).filter(([, value]) => value !== null && typeof value !== "object");
  const rest = Object.entries(metrics).filter(([, value]) => value !== null && typeof value === "object");
  return (
    <Stack gap="md">
      <Suspense fallback={<Waiting />}>
        <Charts query={query} />
      </Suspense>
      {(now.length > 0 || rest.length > 0) && (
        <Section title="Now">
          <Facts facts={now.map(([name, value]) => [name.replaceAll("_", " "), asText(value)] as const)} />
          {rest.map(([name, value]) => (
            <Fragment key={name}>
              <Text size="sm" fw={600}>
                {name.replaceAll("_", " ")}
              </Text>
              <Source text={JSON.stringify(value, null, 2)} label={name} />
            </Fragment>
          ))}
        </Section>
      )}
    </Stack>
  );
}
