import "@xyflow/react/dist/style.css";
import { graphlib, layout } from "@dagrejs/dagre";
import { Button, useComputedColorScheme } from "@mantine/core";
import {
  Background,
  BaseEdge,
  Controls,
  type Edge,
  EdgeLabelRenderer,
  type EdgeProps,
  getBezierPath,
  Handle,
  MarkerType,
  MiniMap,
  type Node,
  type NodeProps,
  Panel,
  Position,
  ReactFlow,
  type ReactFlowInstance,
} from "@xyflow/react";
import { memo, type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { FIT, MARGIN, overview } from "./overview";

/** A box of the graph. `kind` and `state` give its shape and colour. */
export type Card = { id: string; kind: string; state?: string; chosen?: boolean; body: ReactNode };
export type Arrow = { from: string; to: string; moves?: boolean; label?: ReactNode };
export type CardNode = Node<Omit<Card, "id">, "card">;
type ArrowEdge = Edge<{ label: ReactNode }, "arrow">;
type Drawing = { nodes: CardNode[]; edges: ArrowEdge[] };

const [WIDTH, HEIGHT] = [190, 60];
// Between the boxes, with labels on the arrows and without.
const [APART, LABELLED] = [40, 118];
// A map helps where the drawing is larger than its frame.
const MAPPED = 40;
const MAP = { width: 150, height: 104 };
const WHOLE = { ...FIT, minZoom: 0.15, padding: MARGIN };

/** Boxes and arrows from left to right. */
export default function Graph(props: { label: string; cards: readonly Card[]; arrows: readonly Arrow[] }): ReactNode {
  const { label, cards, arrows } = props;
  const scheme = useComputedColorScheme("light");
  const flow = useRef<ReactFlowInstance<CardNode, ArrowEdge> | null>(null);
  const frame = useRef<HTMLElement>(null);
  const [isCut, setCut] = useState(false);
  const { nodes, edges } = useMemo(() => place(cards, arrows), [cards, arrows]);
  const shape = nodes.map(({ id }) => id).join("\n");
  // A graph that has grown has other places: it is fitted again, and not when only a state has changed.
  const latest = useRef(nodes);
  latest.current = nodes;
  const fit = (): void => {
    if (flow.current && frame.current) setCut(overview(flow.current, latest.current, frame.current));
  };
  const showAll = (): void => {
    void flow.current?.fitView(WHOLE);
    setCut(false);
  };
  useEffect(() => {
    if (shape !== "") requestAnimationFrame(fit);
  }, [shape]);
  return (
    <section className="flow" aria-label={label} ref={frame}>
      <ReactFlow
        nodes={nodes}
        edges={edges}
        nodeTypes={TYPES}
        edgeTypes={EDGES}
        colorMode={scheme}
        onInit={(made) => {
          flow.current = made;
          fit();
        }}
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
        <Controls showInteractive={false} fitViewOptions={WHOLE} onFitView={() => setCut(false)} />
        {isCut && (
          <Panel position="top-right">
            <Button variant="default" size="compact-sm" onClick={showAll}>
              Show the whole graph
            </Button>
          </Panel>
        )}
        {nodes.length > MAPPED && <MiniMap pannable nodeColor={toneOf} ariaLabel="Map of the graph" style={MAP} />}
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

/** An arrow with what moves along it. */
function Labelled(props: EdgeProps<ArrowEdge>): ReactNode {
  const { id, data, markerEnd } = props;
  const [path, x, y] = getBezierPath(props);
  return (
    <>
      <BaseEdge id={id} path={path} markerEnd={markerEnd} />
      {data?.label && (
        <EdgeLabelRenderer>
          <div className="label nopan" style={{ transform: `translate(-50%, -50%) translate(${x}px, ${y}px)` }}>
            {data.label}
          </div>
        </EdgeLabelRenderer>
      )}
    </>
  );
}

const TYPES = { card: memo(Box) };
const EDGES = { arrow: memo(Labelled) };
const TONES: Record<string, string> = { running: "ok", failed: "bad", lost: "bad", behind: "wait" };
const toneOf = ({ data }: CardNode): string => `var(--leat-${TONES[data.state ?? ""] ?? "rest"})`;

function place(cards: readonly Card[], arrows: readonly Arrow[]): Drawing {
  const graph = new graphlib.Graph();
  const isLabelled = arrows.some(({ label }) => label !== undefined);
  graph.setGraph({ rankdir: "LR", nodesep: 18, ranksep: isLabelled ? LABELLED : APART });
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
    ({ from, to, moves, label }): ArrowEdge => ({
      id: `${from}→${to}`,
      type: "arrow",
      source: from,
      target: to,
      animated: moves,
      markerEnd,
      data: { label },
    }),
  );
  return { nodes, edges };
}
