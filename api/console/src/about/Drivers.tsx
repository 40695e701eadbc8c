import { Stack, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { MOST_QUERIES, useQueryList } from "../api/queries";
import { usePoll } from "../events/useFeed";
import { NameLink, NameLinks } from "../parts/Names";
import { Empty, Section, Source } from "../parts/Page";
import { Problem } from "../parts/Problem";
import { type Column, Rows, Waiting } from "../parts/Rows";
import { bytes, type Driver, driversOf, waitingOf } from "./drivers";

const POLL_MS = 5_000;
const COLUMNS: Column<Driver>[] = [
  { head: "Driver", width: 150, cell: ({ id }) => <span className="mono">{id}</span> },
  { head: "Kind", width: 100, cell: ({ mode }) => mode },
  { head: "Process", width: 90, cell: ({ pid }) => pid },
  { head: "Memory", width: 100, cell: ({ memory }) => memory !== undefined && bytes(memory) },
  { head: "Runs", cell: ({ queries }) => <NameLinks kind="query" names={queries} most={10} /> },
];
const WAITING: Column<{ name: string; message: string }>[] = [
  { head: "Query", cell: ({ name }) => <NameLink kind="query" name={name} /> },
  { head: "Waits for", cell: ({ message }) => message || "not known yet" },
];

/** Which drivers run queries, with their memory, and which queries wait for one. */
export function Drivers(): ReactNode {
  const found = useQueryList(usePoll(POLL_MS, true));
  if (found.error) return <Problem error={found.error} retry={() => void found.refetch()} />;
  if (!found.data) return <Waiting />;
  const drivers = driversOf(found.data.items);
  const waiting = waitingOf(found.data.items);
  const memory = drivers.reduce((sum, one) => sum + (one.memory ?? 0), 0);
  return (
    <Stack gap="md">
      <Text size="sm">
        {`Drivers that run queries: ${drivers.length}${memory > 0 ? `, with ${bytes(memory)} of memory` : ""}. `}
        {`Queries that wait to start: ${waiting.length}. Queries that your role does not see are left out.`}
      </Text>
      {found.data.next_page_token && <Text size="sm">Only the first {MOST_QUERIES} queries were looked at.</Text>}
      {waiting.length > 0 && (
        <Section title="Waiting">
          <Rows label="Waiting queries" columns={WAITING} items={waiting} keyOf={({ name }) => name} />
        </Section>
      )}
      {drivers.length > 0 ? (
        <Section title="Drivers">
          <Rows label="Drivers" columns={COLUMNS} items={drivers} keyOf={({ id }) => id} />
        </Section>
      ) : (
        <Empty title="No driver runs a query">
          <Text size="sm" mb="xs">
            A query that runs has a driver, alone or together with others. See what queries do:
          </Text>
          <Source text="leat query top" label="Command" />
        </Empty>
      )}
    </Stack>
  );
}
