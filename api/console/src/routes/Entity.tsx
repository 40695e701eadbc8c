import { Button, Group, SegmentedControl, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { type ReactNode, useCallback, useEffect, useRef, useState } from "react";
import { useCapabilities } from "../api/capabilities";
import { api, dataOf } from "../api/client";
import type { Schemas } from "../api/problem";
import { type Numbered, type Stream, useStream } from "../api/stream";
import { Filter } from "../parts/Filter";
import { Json } from "../parts/Json";
import { LineageButton } from "../parts/LineageButton";
import { Empty, Facts, Page, Section } from "../parts/Page";
import { Problem } from "../parts/Problem";
import { type Column, Rows } from "../parts/Rows";
import { State } from "../parts/State";
import { localTime } from "../parts/time";
import { resumedRecords } from "../stores/resumed";
import { shape } from "./Store";

type RecordView = Schemas["RecordView"];
type Shown = Numbered<RecordView>;
// A busy topic would fill the tab's memory: only the newest are kept.
const KEPT = 500;
// Records a second: more would be drawn and not read.
const RATE = 500;
type Search = { from?: string; q?: string; since?: string; partition?: string; offset?: string };

const COLUMNS: Column<Shown>[] = [
  { head: "Partition", width: 80, cell: ({ item }) => item.partition },
  { head: "Offset", width: 90, cell: ({ item }) => item.offset },
  { head: "Time", width: 178, cell: ({ item }) => (item.timestamp ? localTime(item.timestamp) : "") },
  { head: "Key", width: 160, cell: ({ item }) => <Bytes value={item.key} encoding={item.key_encoding} /> },
  { head: "Value", least: 320, cell: ({ item }) => <Bytes value={item.value} encoding={item.value_encoding} /> },
];

const HEADERS: Column<Shown> = {
  head: "Headers",
  width: 200,
  cell: ({ item }) =>
    item.headers?.map(({ name, value, value_encoding }, place) => (
      <div key={`${place} ${name}`}>
        <Text span size="xs" c="dimmed">{`${name}: `}</Text>
        <Bytes value={value} encoding={value_encoding ?? null} />
      </div>
    )),
};

/** One topic, stream or table: what the store reports of it, and its records as they come. */
export function Entity(): ReactNode {
  const { store, entity: name } = useParams({ from: "/inside/stores/$store/entities/$entity" });
  const entity = useQuery({
    queryKey: ["entity", store, name],
    queryFn: () =>
      dataOf(api.GET("/v1/stores/{store}/entities/{entity}", { params: { path: { store, entity: name } } })),
  });
  const configs = Object.entries(entity.data?.effective.configs ?? {});
  return (
    <Page
      title={name}
      crumbs={[
        { label: "Stores", to: "/stores" },
        { label: store, to: `/stores/${encodeURIComponent(store)}` },
      ]}
      actions={entity.data && <LineageButton root={`entity:${store}/${entity.data.name}`} />}
    >
      {entity.error && <Problem error={entity.error} retry={() => void entity.refetch()} />}
      {entity.data && (
        <Facts
          facts={[["Shape", shape(entity.data.effective)], ...configs.map(([key, value]) => [key, value] as const)]}
        />
      )}
      {entity.data && <Records store={store} entity={name} />}
    </Page>
  );
}

function Records({ store, entity }: { store: string; entity: string }): ReactNode {
  const search = useSearch({ from: "/inside/stores/$store/entities/$entity" });
  const [paused, setPaused] = useState(false);
  const stream = useStream<RecordView>(KEPT, paused);
  const { start, cancel } = stream;
  const places = useRef(false);
  places.current = useHasPlaces(store);
  const asked = startOf(search);
  const path = `/v1/stores/${encodeURIComponent(store)}/entities/${encodeURIComponent(entity)}/records`;
  const begin = useCallback(() => {
    if (asked !== undefined)
      start(
        `${path}?${asked}`,
        resumedRecords(path, asked, () => places.current),
      );
  }, [path, asked, start]);
  useEffect(() => {
    begin();
    return cancel;
  }, [begin, cancel]);
  const items = [...stream.items].reverse();
  const columns = items.some(({ item }) => item.headers?.length) ? [...COLUMNS, HEADERS] : COLUMNS;
  return (
    <Section title="Records">
      <Controls stream={stream} paused={paused} pause={setPaused} search={search} />
      {stream.error && <Problem error={stream.error} retry={begin} />}
      {items.length > 0 ? (
        <Rows label="Records" columns={columns} items={items} keyOf={({ number }) => String(number)} />
      ) : (
        <Nothing asked={asked !== undefined} search={search} />
      )}
    </Section>
  );
}

/** Whether records of the store lie at numbered places, behind which a stream can go on. */
function useHasPlaces(store: string): boolean {
  const found = useQuery({
    queryKey: ["store", store],
    queryFn: () => dataOf(api.GET("/v1/stores/{store}", { params: { path: { store } } })),
  });
  return useCapabilities().data?.items.find(({ kind }) => kind === found.data?.kind)?.positions ?? false;
}

/** What to do when there is no record. */
function Nothing({ asked, search: { from, q } }: { asked: boolean; search: Search }): ReactNode {
  if (!asked) {
    const missing = from === "time" ? "a time" : "a partition and an offset";
    return <Empty title={`Give ${missing} to read from`} />;
  }
  const earlier = from === "beginning" ? "" : " Earlier ones are read from the beginning.";
  return (
    <Empty title={q ? "No record with this text yet" : "No record yet"}>
      <Text size="sm">{`New records appear here as they are written.${earlier}`}</Text>
    </Empty>
  );
}

type ControlsProps = {
  stream: Stream<RecordView>;
  paused: boolean;
  pause: (paused: boolean) => void;
  search: Search;
};

/** What is asked for, as a query; undefined while the time or the offset is missing. */
function startOf({ from, since, partition, offset, q }: Search): string | undefined {
  const asked = new URLSearchParams({ rate: String(RATE) });
  if (partition !== undefined) asked.set("partition", partition);
  if (q) asked.set("q", q);
  if (from === "time") {
    const moment = new Date(since ?? "");
    if (Number.isNaN(moment.getTime())) return undefined;
    asked.set("since", moment.toISOString());
  } else if (from === "offset") {
    if (partition === undefined || !/^\d+$/.test(offset ?? "")) return undefined;
    asked.set("offset", offset ?? "");
  } else asked.set("from", from === "beginning" ? from : "latest");
  return asked.toString();
}

function Controls({ stream, paused, pause, search }: ControlsProps): ReactNode {
  const { from = "latest", q, since, partition, offset } = search;
  const navigate = useNavigate({ from: "/stores/$store/entities/$entity" });
  const set = (more: Search): void => void navigate({ search: (old) => ({ ...old, ...more }), replace: true });
  const kept = stream.total > stream.items.length && !paused ? `, the newest ${stream.items.length} kept` : "";
  return (
    <Group gap="sm" mb="xs">
      <SegmentedControl
        size="xs"
        aria-label="Where to begin"
        className="slides"
        data={[
          { value: "latest", label: "New records" },
          { value: "beginning", label: "From the beginning" },
          { value: "time", label: "From a time" },
          { value: "offset", label: "From an offset" },
        ]}
        value={from}
        onChange={(value) => set({ from: value })}
      />
      {from === "time" && (
        <Filter
          label="Time of the first records"
          type="datetime-local"
          size="xs"
          w={200}
          value={since}
          change={(value) => set({ since: value })}
        />
      )}
      <Filter
        label={from === "offset" ? "Partition" : "Any partition"}
        size="xs"
        w={110}
        value={partition}
        change={(value) => set({ partition: value })}
      />
      {from === "offset" && (
        <Filter label="Offset" size="xs" w={110} value={offset} change={(value) => set({ offset: value })} />
      )}
      <Button size="xs" variant="default" disabled={stream.state !== "running"} onClick={() => pause(!paused)}>
        {paused ? "Resume" : "Pause"}
      </Button>
      <Filter label="Text in key or value" size="xs" w={180} value={q} change={(value) => set({ q: value })} />
      <State state={paused && stream.state === "running" ? "paused" : stream.state} />
      <Text size="sm" c="dimmed" role="status">
        {stream.total} {q ? "found" : "read"}
        {kept}
        {stream.gap && `, ${stream.gap}`}
      </Text>
    </Group>
  );
}

function Bytes({ value, encoding }: { value: unknown; encoding?: string | null }): ReactNode {
  if (value === null || value === undefined) return <span className="null">null</span>;
  return (
    <span className="mono">
      <Json value={value} />
      {encoding && (
        <Text span size="xs" c="dimmed">
          {` (${encoding})`}
        </Text>
      )}
    </span>
  );
}
