import { Group, SegmentedControl, SimpleGrid, Stack, Switch, Text } from "@mantine/core";
import { type QueryClient, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type ReactNode, useMemo, useState } from "react";
import { api, dataOf } from "../api/client";
import { Problem } from "../parts/Problem";
import { type Column, Rows, Waiting } from "../parts/Rows";
import { localTime } from "../parts/time";
import { Chart } from "./Chart";
import { FIGURES, isSpan, type Moment, momentOf, pointsOf, SPANS, type Span } from "./history";

const POLL_MS = 15_000;
const MOST = 600;
const COLUMNS: Column<Moment>[] = [
  { head: "Time", width: 178, cell: ({ at }) => localTime(at) },
  ...FIGURES.map(({ label, show }, place) => ({
    head: label,
    width: 150,
    cell: ({ values }: Moment) => {
      const value = values[place];
      return typeof value === "number" ? show(value) : "";
    },
  })),
];

/** How the figures of a query's job went. */
export default function Charts({ query }: { query: string }): ReactNode {
  const { span: wanted } = useSearch({ from: "/inside/queries/$query" });
  const navigate = useNavigate({ from: "/queries/$query" });
  const span = isSpan(wanted) ? wanted : "1h";
  const [table, setTable] = useState(false);
  const client = useQueryClient();
  const found = useQuery({
    queryKey: ["query", query, "progress", span],
    queryFn: () => load(client, query, span),
    refetchInterval: POLL_MS,
  });
  return (
    <Stack gap="sm">
      <Group gap="md">
        <SegmentedControl
          size="xs"
          aria-label="Time span"
          data={Object.keys(SPANS)}
          value={span}
          onChange={(value) => void navigate({ search: (old) => ({ ...old, span: value }), replace: true })}
        />
        <Switch
          size="xs"
          label="As a table"
          checked={table}
          onChange={(event) => setTable(event.currentTarget.checked)}
        />
      </Group>
      {found.error && <Problem error={found.error} retry={() => void found.refetch()} />}
      {found.isPending && <Waiting />}
      {found.data && found.data.length === 0 && (
        <Text size="sm">
          The job has reported no figure in this time. Choose a longer one, or look at its events.
        </Text>
      )}
      {found.data && found.data.length > 0 && <Drawn moments={found.data} span={span} table={table} />}
    </Stack>
  );
}

type DrawnProps = { moments: readonly Moment[]; span: Span; table: boolean };

function Drawn({ moments, span, table }: DrawnProps): ReactNode {
  // A clock that is slow must not hide the newest.
  const until = Math.max(Date.now() / 1_000, moments.at(-1)?.time ?? 0);
  const drawn = useMemo(() => FIGURES.map((_, place) => pointsOf(moments, place)), [moments]);
  const has = drawn.map(([, values]) => values.some((value) => value !== null));
  const missing = FIGURES.filter((_, place) => !has[place]).map(({ label }) => label.toLowerCase());
  if (table) {
    return <Rows label="Figures over time" columns={COLUMNS} items={[...moments].reverse()} keyOf={({ at }) => at} />;
  }
  return (
    <>
      <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="sm">
        {FIGURES.map(
          (figure, place) =>
            has[place] && (
              <Chart
                key={figure.label}
                figure={figure}
                points={drawn[place] ?? [[], []]}
                from={until - SPANS[span]}
                until={until}
              />
            ),
        )}
      </SimpleGrid>
      {missing.length > 0 && (
        <Text size="xs" c="dimmed">
          {`The job has not reported: ${missing.join(", ")}.`}
        </Text>
      )}
    </>
  );
}

/** The moments of a span: those that are there already, and what came after them. */
async function load(client: QueryClient, query: string, span: Span): Promise<Moment[]> {
  const before = client.getQueryData<Moment[]>(["query", query, "progress", span]) ?? [];
  const from = Date.now() - SPANS[span] * 1_000;
  const since = before.at(-1)?.at ?? new Date(from).toISOString();
  const params = { path: { query }, query: { limit: MOST, since } };
  const found = await dataOf(api.GET("/v1/queries/{query}/progress", { params }));
  return [...before, ...found.items.map(momentOf)].filter(({ time }) => time * 1_000 >= from);
}
