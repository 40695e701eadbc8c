import { Anchor, Group, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { shell } from "../api/code";
import { quoted } from "../api/names";
import type { Schemas } from "../api/problem";
import { Copy } from "./Copy";
import { Source } from "./Page";

type QueryView = Schemas["QueryView"];

/** The record that a query failed at, as commands write it. */
export function recordOf({ status }: QueryView): string | undefined {
  const place = status.error?.record;
  return place ? `${place.entity}:${place.partition}:${place.offset}` : undefined;
}

/** What a failed query needs: the record that it failed at, and the command that lets it go on. */
export function Cure({ query }: { query: QueryView }): ReactNode {
  const record = recordOf(query);
  const { state, error } = query.status;
  if (state !== "failed" && state !== "lost") return null;
  const restart = `leat query restart ${shell(quoted(query.name))}`;
  const command = record ? `${restart} --skip-record ${shell(record)}` : restart;
  return (
    <>
      {record && <RecordLink query={query} entity={error?.record?.entity} record={record} />}
      <Group justify="space-between" gap="xs" mt={6} mb={4}>
        <Text size="xs" c="dimmed">
          {record ? "This command continues without the record:" : "When the cause is fixed:"}
        </Text>
        <Copy text={command} />
      </Group>
      <Source text={command} label={`Command for ${query.name}`} />
    </>
  );
}

type RecordProps = { query: QueryView; entity: string | undefined; record: string };

function RecordLink({ query: { plan, sources }, entity, record }: RecordProps): ReactNode {
  // Which of several sources it came from is not reported: the page of the entity is known for one only.
  const store = sources.length === 1 ? plan?.sources[0]?.store : undefined;
  return (
    <Text size="sm" mt={4} className="break">
      {"Record "}
      {store && entity ? (
        <Anchor
          component={Link}
          to="/stores/$store/entities/$entity"
          params={{ store: quoted(store), entity } as never}
          inherit
          underline="always"
        >
          {record}
        </Anchor>
      ) : (
        record
      )}
    </Text>
  );
}
