import { Anchor, Button, Group, Paper, Stack, Text } from "@mantine/core";
import { IconCheck } from "@tabler/icons-react";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useEffect } from "react";
import { asText } from "../api/exact";
import type { Schemas } from "../api/problem";
import { type Numbered, useStream } from "../api/stream";
import { Problem } from "../parts/Problem";
import { Properties } from "../parts/Properties";
import { type Column, Rows } from "../parts/Rows";
import { State } from "../parts/State";
import { Value } from "../parts/Value";

type Result = Schemas["StatementResultView"];
type Row = { op: string; row: Record<string, unknown> };
// Of a SELECT that never ends the newest rows are kept.
const KEPT = 1_000;

/** What each statement of a run did. */
export function Results({ results }: { results: readonly Result[] }): ReactNode {
  return (
    <Stack gap="sm">
      {results.map((result, index) => (
        <One key={index} result={result} />
      ))}
    </Stack>
  );
}

function One({ result }: { result: Result }): ReactNode {
  const columns = (result.columns ?? []).map((column) => ({ name: asText(column.name), type: asText(column.type) }));
  const effective = result.object?.effective as Record<string, Schemas["EffectiveView"]> | undefined;
  return (
    <Paper withBorder p="xs">
      <Group gap="xs" mb={result.rows ? 6 : 0}>
        <IconCheck size={16} color="var(--leat-ok)" aria-hidden />
        <Text size="sm" fw={600}>
          {result.kind.replaceAll("_", " ")}
        </Text>
        <Thing result={result} />
      </Group>
      {Array.isArray(result.rows) && <Answered columns={columns} rows={result.rows} />}
      {effective && <Properties effective={effective} />}
      {typeof result.rows === "string" && (
        <Streamed path={result.rows} columns={columns} changes={result.object?.changelog === true} />
      )}
      {result.truncated && <Text size="sm">There are more rows than these. Add LIMIT, or a condition.</Text>}
    </Paper>
  );
}

function Thing({ result }: { result: Result }): ReactNode {
  if (result.query) {
    return (
      <Anchor component={Link} to="/queries/$query" params={{ query: result.query } as never} size="sm">
        {`query ${result.query}`}
      </Anchor>
    );
  }
  const { noun, name } = result.object ?? {};
  if (typeof noun !== "string" || typeof name !== "string" || noun === "statement") return null;
  const to = { relation: "/relations/$relation", stream: "/relations/$relation", store: "/stores/$store" }[noun];
  if (to === undefined) return <Text size="sm">{`${noun.replaceAll("_", " ")} ${name}`}</Text>;
  return (
    <Anchor component={Link} to={to} params={{ relation: name, store: name } as never} size="sm">
      {`${noun} ${name}`}
    </Anchor>
  );
}

type Head = { name: string; type: string };

function Answered({ columns, rows }: { columns: readonly Head[]; rows: readonly unknown[][] }): ReactNode {
  if (rows.length === 0) return <Text size="sm">No rows.</Text>;
  const shown = columns.map(
    (column, place): Column<Numbered<unknown[]>> => ({
      head: column.name,
      cell: ({ item }) => <Value of={item[place]} />,
    }),
  );
  const items = rows.map((item, number) => ({ number, item }));
  return <Rows label="Rows" columns={shown} items={items} keyOf={({ number }) => String(number)} />;
}

type StreamedProps = { path: string; columns: readonly Head[]; changes: boolean };

function Streamed({ path, columns, changes }: StreamedProps): ReactNode {
  const stream = useStream<Row>(KEPT);
  const { start, cancel } = stream;
  useEffect(() => {
    start(`${path}?waits=true`);
    return cancel;
  }, [path, start, cancel]);
  const shown = columns.map(
    (column): Column<Numbered<Row>> => ({
      head: column.name,
      cell: ({ item }) => <Value of={item.row[column.name]} />,
    }),
  );
  if (changes) shown.unshift({ head: "Change", width: 70, cell: ({ item }) => item.op });
  return (
    <Stack gap={6}>
      <Group gap="sm">
        <State state={stream.state} />
        <Text size="sm" c="dimmed" role="status">
          {[`${stream.total} rows`, stream.total > KEPT && `the newest ${KEPT} kept`, stream.note]
            .filter(Boolean)
            .join(", ")}
        </Text>
        {stream.state === "running" && (
          <Button size="compact-xs" variant="default" onClick={cancel}>
            Cancel
          </Button>
        )}
      </Group>
      {stream.error && <Problem error={stream.error} />}
      {stream.items.length > 0 && (
        <Rows label="Rows" columns={shown} items={stream.items} keyOf={({ number }) => String(number)} />
      )}
    </Stack>
  );
}
