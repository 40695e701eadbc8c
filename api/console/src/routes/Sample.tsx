import { Button, Group, SegmentedControl, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { quoted } from "../api/names";
import type { Schemas } from "../api/problem";
import { loadSample } from "../api/sample";
import { Copy } from "../parts/Copy";
import { Empty, Source } from "../parts/Page";
import { Problem } from "../parts/Problem";
import { type Column, Rows, Waiting } from "../parts/Rows";
import { localTime } from "../parts/time";
import { Value } from "../parts/Value";

type View = Schemas["RelationView"];
type Record = Schemas["SampledRecord"] & { number: number };
type Start = "latest" | "earliest";
const LIMIT = 20;

/** The newest or the oldest records of a relation as rows; those that are none with the reason. */
export function Sample({ view }: { view: View }): ReactNode {
  const [start, choose] = useState<Start>("latest");
  const found = useQuery({
    queryKey: ["sample", view.fqn, start],
    queryFn: () => loadSample(view.fqn, start, LIMIT),
    // Each look reads the store: only the person asks for another one.
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    retry: false,
  });
  const sample = found.data;
  const hasOrder = sample?.records.some(({ offset }) => offset !== null && offset !== undefined) ?? false;
  return (
    <Stack gap="sm">
      <Group gap="sm">
        <SegmentedControl
          size="xs"
          aria-label="Which records"
          data={[
            { value: "latest", label: "Newest" },
            { value: "earliest", label: "Oldest" },
          ]}
          value={start}
          onChange={(value) => choose(value as Start)}
        />
        <Button size="xs" variant="default" loading={found.isFetching} onClick={() => void found.refetch()}>
          Refresh
        </Button>
        {sample && sample.records.length > 0 && (
          <Text size="sm" c="dimmed" role="status">
            {[`${sample.records.length} ${hasOrder ? "records" : "rows"}`, unreadable(sample.records)]
              .filter(Boolean)
              .join(", ")}
          </Text>
        )}
      </Group>
      {found.error && <Problem error={found.error} retry={() => void found.refetch()} />}
      {found.isPending && <Waiting />}
      {sample?.note && sample.records.length > 0 && <Text size="sm">{sample.note}</Text>}
      {sample && sample.records.length > 0 && (
        <Rows
          label="Sample"
          columns={columnsOf(sample, hasOrder)}
          items={sample.records.map((one, number) => ({ ...one, number }))}
          keyOf={({ number }) => String(number)}
        />
      )}
      {sample && sample.records.length === 0 && <NoRecords view={view} note={sample.note} />}
    </Stack>
  );
}

function unreadable(records: readonly Schemas["SampledRecord"][]): string {
  const count = records.filter(({ outcome }) => outcome === "undecodable").length;
  return count > 0 ? `${count} undecodable` : "";
}

function columnsOf(sample: Schemas["RelationSample"], hasOrder: boolean): Column<Record>[] {
  const hasFaults = sample.records.some(({ outcome }) => outcome !== "row");
  return [
    ...(hasOrder ? PLACE : []),
    ...(hasFaults ? [FAULT] : []),
    ...sample.columns.map(
      ({ name }, place): Column<Record> => ({ head: name, cell: ({ row }) => row && <Value of={row[place]} /> }),
    ),
  ];
}

const PLACE: Column<Record>[] = [
  { head: "Place", width: 90, cell: (one) => <span className="mono">{`${one.partition}:${one.offset}`}</span> },
  { head: "Time", width: 178, cell: ({ timestamp }) => (timestamp ? localTime(Number(timestamp)) : "") },
  { head: "Key", cell: ({ key }) => <Value of={key} /> },
];

const FAULT: Column<Record> = {
  head: "Not a row",
  width: 260,
  cell: ({ outcome, reason }) => (
    <span className={outcome === "undecodable" ? "undecodable" : undefined}>
      {outcome === "deletion" ? "It deletes the row of its key." : reason}
    </span>
  ),
};

function NoRecords({ view, note }: { view: View; note?: string | null }): ReactNode {
  const text = insertOf(view);
  return (
    <Empty title="There is no record to show">
      <Text size="sm" mb="xs">
        {note}
      </Text>
      {view.kind !== "materialized_view" && (
        <>
          <Group justify="space-between" mb={6}>
            <Text size="sm">A statement that writes one:</Text>
            <Copy text={text} />
          </Group>
          <Source label="Example" text={text} />
        </>
      )}
    </Empty>
  );
}

const LITERALS: { [kind: string]: string } = {
  VARCHAR: "'text'",
  BOOLEAN: "TRUE",
  DATE: "DATE '2026-01-31'",
  TIME: "'13:05:00'",
  TIMESTAMP: "TIMESTAMP '2026-01-31 13:05:00'",
  TIMESTAMP_LTZ: "TIMESTAMP '2026-01-31 13:05:00'",
};
const NUMBERS = ["TINYINT", "SMALLINT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL"];

/** An INSERT of one row; columns without a simple literal are NULL. */
function insertOf(view: View): string {
  const values = view.columns.map(({ type }) => {
    const kind = /^\w+/.exec(type)?.[0] ?? "";
    return NUMBERS.includes(kind) ? "1" : (LITERALS[kind] ?? "NULL");
  });
  const names = view.columns.map(({ name }) => quoted(name)).join(", ");
  return `INSERT INTO ${view.fqn} (${names})\nVALUES (${values.join(", ")});`;
}
