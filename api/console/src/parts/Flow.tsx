import "@xyflow/react/dist/style.css";
import { graphlib, layout } from "@dagrejs/dagre";
import { Anchor, Text, useComputedColorScheme } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import {
  Background,
  Controls,
  type Edge,
  Handle,
  MarkerType,
  type Node,
  type NodeProps,
  Position,
  ReactFlow,
} from "@xyflow/react";
import { memo, type ReactNode, useMemo } from "react";
import type { Schemas } from "../api/problem";
import { State } from "./State";

type QueryView = Schemas["QueryView"];
type Shown = { kind: "relation" | "query"; name: string; below: string; state?: string };
type FlowNode = Node<Shown, "card">;
const [WIDTH, HEIGHT] = [190, 60];

/** Relations and the queries between them, from left to right. */
export default function Flow({ queries }: { queries: readonly QueryView[] }): ReactNode {
  const scheme = useComputedColorScheme("light");
  const { nodes, edges } = useMemo(() => draw(queries), [queries]);
  return (
    <section className="flow" aria-label="Graph of queries">
      <ReactFlow
        nodes={nodes}
        edges={edges}
        nodeTypes={TYPES}
        colorMode={scheme}
        fitView
        fitViewOptions={{ maxZoom: 1.15, minZoom: 0.7, padding: 0.04 }}
        minZoom={0.15}
        nodesDraggable={false}
        nodesConnectable={false}
        nodesFocusable={false}
        edgesFocusable={false}
        elementsSelectable={false}
        zoomOnScroll={false}
        preventScrolling={false}
      >
        <Background gap={22} />
        <Controls showInteractive={false} />
      </ReactFlow>
    </section>
  );
}

function Card({ data }: NodeProps<FlowNode>): ReactNode {
  return (
    <div className="card" data-kind={data.kind} data-state={data.state}>
      <Handle type="target" position={Position.Left} />
      {data.kind === "query" ? (
        <Anchor component={Link} to="/queries/$query" params={{ query: data.name } as never} size="sm" truncate>
          {data.name}
        </Anchor>
      ) : (
        <Anchor
          component={Link}
          to="/relations/$relation"
          params={{ relation: data.name } as never}
          aria-label={data.name}
          title={data.name}
          size="sm"
          truncate
        >
          {shortName(data.name)}
        </Anchor>
      )}
      {data.state ? (
        <State state={data.state} />
      ) : (
        <Text size="xs" c="dimmed" truncate title={data.below}>
          {data.below}
        </Text>
      )}
      <Handle type="source" position={Position.Right} />
    </div>
  );
}

/** A full name without database and schema; one with quotes stays whole. */
function shortName(fqn: string): string {
  return fqn.replace(/^[^."]+\.[^."]+\./, "");
}

const TYPES = { card: memo(Card) };

function draw(queries: readonly QueryView[]): { nodes: FlowNode[]; edges: Edge[] } {
  const cards = new Map<string, Shown>();
  const edges = new Map<string, Edge>();
  const connect = (source: string, target: string, state: string): void => {
    const id = `${source}→${target}`;
    const markerEnd = { type: MarkerType.ArrowClosed, color: "var(--leat-rest)" };
    edges.set(id, { id, source, target, animated: state === "running", markerEnd });
  };
  const relation = (name: string, below: string): string => {
    const id = `relation ${name}`;
    // A sink's card says more than a source's: it knows the topic.
    if (!cards.has(id) || below.includes(" / ")) cards.set(id, { kind: "relation", name, below });
    return id;
  };
  for (const query of queries) {
    const id = `query ${query.name}`;
    const { state } = query.status;
    cards.set(id, { kind: "query", name: query.name, below: "", state });
    const stores = new Map(query.plan?.sources.map((source) => [source.fqn, source.store]));
    for (const source of query.sources) connect(relation(source, stores.get(source) ?? ""), id, state);
    const sink = query.plan?.sink;
    connect(id, relation(query.sink, sink ? `${sink.store} / ${sink.entity}` : ""), state);
  }
  return place(cards, [...edges.values()]);
}

function place(cards: ReadonlyMap<string, Shown>, edges: Edge[]): { nodes: FlowNode[]; edges: Edge[] } {
  const graph = new graphlib.Graph();
  graph.setGraph({ rankdir: "LR", nodesep: 18, ranksep: 40 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const id of cards.keys()) graph.setNode(id, { width: WIDTH, height: HEIGHT });
  for (const { source, target } of edges) graph.setEdge(source, target);
  layout(graph);
  const nodes = [...cards].map(([id, data]): FlowNode => {
    const { x, y } = graph.node(id);
    return {
      id,
      type: "card",
      data,
      position: { x: x - WIDTH / 2, y: y - HEIGHT / 2 },
      width: WIDTH,
      height: HEIGHT,
      sourcePosition: Position.Right,
      targetPosition: Position.Left,
    };
  });
  return { nodes, edges };
}
