import { Anchor, CloseButton, Group, Paper, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { asText } from "../api/exact";
import { shortName } from "../api/names";
import { loadSample } from "../api/sample";
import { Problem } from "./Problem";
import { Waiting } from "./Rows";
import { localTime } from "./time";

const LIMIT = 5;
const POLL_MS = 5_000;

/** The newest records of a relation, read again while they are looked at. */
export function RecordsAt({ relation, close }: { relation: string; close: () => void }): ReactNode {
  const found = useQuery({
    queryKey: ["newest", relation],
    queryFn: () => loadSample(relation, "latest", LIMIT),
    refetchInterval: POLL_MS,
    retry: false,
    gcTime: 0,
  });
  const sample = found.data;
  return (
    <Paper withBorder p="sm" component="section" aria-label={`Records of ${relation}`}>
      <Group justify="space-between" wrap="nowrap" align="flex-start" mb={4}>
        <Anchor
          component={Link}
          to="/relations/$relation"
          params={{ relation } as never}
          search={{ tab: "sample" } as never}
          fw={600}
          size="sm"
          className="what"
          title={relation}
        >
          {shortName(relation)}
        </Anchor>
        <CloseButton size="sm" aria-label="Close the records" onClick={close} />
      </Group>
      {found.error && <Problem error={found.error} retry={() => void found.refetch()} />}
      {found.isPending && <Waiting />}
      {sample && sample.records.length === 0 && <Text size="sm">{sample.note ?? "There is no record yet."}</Text>}
      <Stack gap={6}>
        {sample?.records.map((record, index) => (
          <div key={`${record.partition}:${record.offset}:${index}`} className="record">
            <Text size="xs" c="dimmed">
              {[
                record.offset !== null && record.offset !== undefined && `${record.partition}:${record.offset}`,
                record.timestamp && localTime(Number(record.timestamp)),
                record.outcome !== "row" && record.outcome.replace("_", " "),
              ]
                .filter(Boolean)
                .join(" · ")}
            </Text>
            {record.row ? (
              <dl className="values">
                {sample.columns.map(({ name }, place) => (
                  <div key={name}>
                    <dt>{name}</dt>
                    <dd className="mono">{asText(record.row?.[place])}</dd>
                  </div>
                ))}
              </dl>
            ) : (
              <Text size="xs" className={record.outcome === "undecodable" ? "undecodable break" : "break"}>
                {record.reason}
              </Text>
            )}
          </div>
        ))}
      </Stack>
    </Paper>
  );
}
