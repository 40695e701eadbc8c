import { ActionIcon, Anchor, Group, NativeSelect, Text } from "@mantine/core";
import { useQueries } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { type ReactNode, useCallback, useMemo } from "react";
import { api, dataOf } from "../api/client";
import { usePoll } from "../events/useFeed";
import { Beginnings, Choose } from "../lineage/Choose";
import {
  BEHIND,
  type Lineage as Found,
  hidden,
  type LineageNode,
  merged,
  nearest,
  rootOf,
  steps,
  toneOf,
} from "../lineage/graph";
import { ObjectLink } from "../lineage/ObjectLink";
import { Boundary } from "../parts/Boundary";
import Graph from "../parts/Graph";
import { Page } from "../parts/Page";
import { Problem } from "../parts/Problem";
import { type Column, Rows, Waiting } from "../parts/Rows";
import { State } from "../parts/State";

const POLL_MS = 5_000;
const DEPTHS = [1, 2, 3, 5, 10, 100];
const USUAL = 3;
// A drawing of more is no help.
const MOST = 150;

/** What records pass through before and after one object. */
export function Lineage(): ReactNode {
  const { root, depth = USUAL, more } = useSearch({ from: "/inside/lineage" });
  const navigate = useNavigate({ from: "/lineage" });
  const choose = (chosen: string): void => void navigate({ search: { root: chosen, depth } });
  return (
    <Page title="Lineage">
      <Group gap="sm" align="flex-end">
        <Choose root={root ?? ""} choose={choose} />
        <NativeSelect
          label="Steps"
          data={DEPTHS.map((one) => ({ value: String(one), label: one === 100 ? "all" : String(one) }))}
          value={String(depth)}
          onChange={(event) => {
            const wanted = Number(event.currentTarget.value);
            void navigate({ search: (old) => ({ ...old, depth: wanted }), replace: true });
          }}
        />
      </Group>
      {root === undefined ? <Beginnings /> : <Around root={root} depth={depth} more={more ?? []} />}
    </Page>
  );
}

type Of = { root: string; depth: number; more: readonly string[] };

function Around({ root, depth, more }: Of): ReactNode {
  const navigate = useNavigate({ from: "/lineage" });
  const poll = usePoll(POLL_MS, true);
  const parts = useQueries({
    queries: [{ root, depth }, ...more.map((one) => ({ root: one, depth: 1 }))].map((query) => ({
      queryKey: ["lineage", query.root, query.depth],
      queryFn: (): Promise<Found> => dataOf(api.GET("/v1/lineage", { params: { query } })),
      // The more parts, the rarer each is asked for.
      refetchInterval: poll * (1 + more.length),
    })),
    combine: (found) => ({
      whole: merged(found.flatMap(({ data }) => (data ? [data] : []))),
      isReady: found[0]?.data !== undefined,
      error: found.find(({ error }) => error)?.error,
      again: () => found.forEach(({ refetch }) => void refetch()),
    }),
  });
  const expand = useCallback(
    (id: string): void =>
      void navigate({ search: (old) => ({ ...old, more: [...(old.more ?? []), id] }), resetScroll: false }),
    [navigate],
  );
  const start = rootOf(parts.whole, root);
  return (
    <>
      {parts.error && <Problem error={parts.error} retry={parts.again} />}
      {!parts.isReady && !parts.error && <Waiting />}
      {start && <Drawn whole={parts.whole} root={start} expand={expand} />}
    </>
  );
}

type DrawnProps = { whole: Found; root: LineageNode; expand: (id: string) => void };

function Drawn({ whole, root, expand }: DrawnProps): ReactNode {
  const shown = useMemo(() => nearest(whole, root.id, MOST), [whole, root.id]);
  const cards = useMemo(() => {
    const left = hidden(shown);
    return shown.nodes.map((node) => ({
      id: node.id,
      kind: node.kind,
      state: toneOf(node),
      chosen: node.id === root.id,
      body: <Body node={node} left={left.get(node.id) ?? 0} expand={expand} />,
    }));
  }, [shown, root.id, expand]);
  const arrows = useMemo(() => {
    const running = new Set(shown.nodes.filter(({ state }) => state === "running").map(({ id }) => id));
    return shown.edges.map(({ from, to }) => ({ from, to, moves: running.has(from) || running.has(to) }));
  }, [shown]);
  return (
    <>
      <Legend />
      {shown !== whole && (
        <Text size="sm" role="status">
          The {MOST} objects that are nearest are drawn, of {whole.nodes.length}.
        </Text>
      )}
      <Boundary>
        <Graph label={`Lineage of ${root.name}`} cards={cards} arrows={arrows} />
      </Boundary>
      <Objects shown={shown} root={root} />
    </>
  );
}

type BodyProps = { node: LineageNode; left: number; expand: (id: string) => void };

function Body({ node, left, expand }: BodyProps): ReactNode {
  return (
    <Group gap={8} wrap="nowrap" justify="space-between">
      <div className="heading">
        <ObjectLink node={node} short />
        {node.kind === "query" && node.state ? <Fares node={node} /> : <Below node={node} />}
      </div>
      {left > 0 && (
        <ActionIcon
          className="nopan whole"
          size={28}
          variant="default"
          aria-label={`Show +${left} beside ${node.name}`}
          title={`Show ${left} more`}
          fz={12}
          onClick={() => expand(node.id)}
        >
          +{left}
        </ActionIcon>
      )}
    </Group>
  );
}

function Below({ node }: { node: LineageNode }): ReactNode {
  if (node.kind === "store" && node.state) return <State state={node.state} />;
  return (
    <Text size="xs" c="dimmed">
      {node.kind}
    </Text>
  );
}

/** The state of a query, and how much it has to read. */
function Fares({ node }: { node: LineageNode }): ReactNode {
  const behind = toneOf(node) === "behind";
  return (
    <Group gap={6} wrap="nowrap">
      <State state={behind ? "behind" : (node.state ?? "")} />
      {behind && (
        <Text size="xs" c="dimmed">
          {node.lag?.toLocaleString("en")}
        </Text>
      )}
    </Group>
  );
}

function Legend(): ReactNode {
  return (
    <Group gap="md">
      <State state="running" />
      <State state="behind" />
      <State state="failed" />
      <Text size="xs" c="dimmed">
        Behind: a running query that has more than {BEHIND.toLocaleString("en")} records to read.
      </Text>
    </Group>
  );
}

/** The same as a table, for those who cannot use a drawing, and for small screens. */
function Objects({ shown, root }: { shown: Found; root: LineageNode }): ReactNode {
  const distance = steps(shown, root.id);
  const columns: Column<LineageNode>[] = [
    { head: "Object", cell: (node) => <ObjectLink node={node} /> },
    { head: "Kind", width: 90, cell: ({ kind }) => kind },
    { head: "State", width: 120, cell: (node) => node.state && <Fares node={node} /> },
    { head: "Left to read", width: 110, cell: ({ lag }) => lag?.toLocaleString("en") },
    { head: "Place", width: 150, cell: ({ id }) => place(distance.get(id)) },
    {
      head: "Look",
      width: 90,
      cell: ({ id, name }) =>
        id !== root.id && (
          <Anchor
            component={Link}
            to="/lineage"
            search={{ root: id } as never}
            size="sm"
            aria-label={`Look from here: ${name}`}
          >
            from here
          </Anchor>
        ),
    },
  ];
  const far = (node: LineageNode): number => distance.get(node.id) ?? Number.POSITIVE_INFINITY;
  const items = [...shown.nodes].sort((a, b) => (far(a) < far(b) ? -1 : far(a) > far(b) ? 1 : 0));
  return <Rows label="Objects" columns={columns} items={items} keyOf={({ id }) => id} />;
}

function place(distance: number | undefined): string {
  if (distance === undefined) return "beside";
  if (distance === 0) return "chosen";
  return `${Math.abs(distance)} ${distance < 0 ? "upstream" : "downstream"}`;
}
