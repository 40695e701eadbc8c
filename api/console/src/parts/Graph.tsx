import "@xyflow/react/dist/style.css";
import { graphlib, layout } from "@dagrejs/dagre";
import { useComputedColorScheme } from "@mantine/core";
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
  type ReactFlowInstance,
} from "@xyflow/react";
import { memo, type ReactNode, useEffect, useMemo, useRef } from "react";

/** A box of the graph. `kind` and `state` give its shape and colour. */
export type Card = { id: string; kind: string; state?: string; chosen?: boolean; body: ReactNode };
export type Arrow = { from: string; to: string; moves?: boolean };
type CardNode = Node<Omit<Card, "id">, "card">;
type Drawing = { nodes: CardNode[]; edges: Edge[] };

const [WIDTH, HEIGHT] = [190, 60];
const FIT = { maxZoom: 1.15, minZoom: 0.7, padding: 0.04 };

/** Boxes and arrows from left to right. */
export default function Graph(props: { label: string; cards: readonly Card[]; arrows: readonly Arrow[] }): ReactNode {
  const { label, cards, arrows } = props;
  const scheme = useComputedColorScheme("light");
  const flow = useRef<ReactFlowInstance<CardNode> | null>(null);
  const { nodes, edges } = useMemo(() => place(cards, arrows), [cards, arrows]);
  const shape = nodes.map(({ id }) => id).join("\n");
  // A graph that has grown has other places: it is fitted again, and not when only a state has changed.
  useEffect(() => {
    if (shape !== "") requestAnimationFrame(() => void flow.current?.fitView(FIT));
  }, [shape]);
  return (
    <section className="flow" aria-label={label}>
      <ReactFlow
        nodes={nodes}
        edges={edges}
        nodeTypes={TYPES}
        colorMode={scheme}
        onInit={(made) => {
          flow.current = made;
        }}
        fitView
        fitViewOptions={FIT}
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

function Box({ data }: NodeProps<CardNode>): ReactNode {
  return (
    <div className="card" data-kind={data.kind} data-state={data.state} data-chosen={data.chosen || undefined}>
      <Handle type="target" position={Position.Left} />
      {data.body}
      <Handle type="source" position={Position.Right} />
    </div>
  );
}

const TYPES = { card: memo(Box) };

function place(cards: readonly Card[], arrows: readonly Arrow[]): Drawing {
  const graph = new graphlib.Graph();
  graph.setGraph({ rankdir: "LR", nodesep: 18, ranksep: 40 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { id } of cards) graph.setNode(id, { width: WIDTH, height: HEIGHT });
  for (const { from, to } of arrows) graph.setEdge(from, to);
  layout(graph);
  const nodes = cards.map(({ id, ...data }): CardNode => {
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
  const markerEnd = { type: MarkerType.ArrowClosed, color: "var(--leat-rest)" };
  const edges = arrows.map(
    ({ from, to, moves }): Edge => ({ id: `${from}→${to}`, source: from, target: to, animated: moves, markerEnd }),
  );
  return { nodes, edges };
}
