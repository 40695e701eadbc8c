import type { Schemas } from "../api/problem";

export type Lineage = Schemas["LineageView"];
export type LineageNode = Lineage["nodes"][number];
type Edge = Lineage["edges"][number];

// A query that has more records than these to read is drawn as behind.
export const BEHIND = 1_000;

/** Several parts of one graph as one; of a node that is in several, the first counts. */
export function merged(parts: readonly Lineage[]): Lineage {
  const nodes = new Map<string, LineageNode>();
  const edges = new Map<string, Edge>();
  for (const part of parts) {
    for (const node of part.nodes) if (!nodes.has(node.id)) nodes.set(node.id, node);
    for (const edge of part.edges) edges.set(`${edge.from}\n${edge.to}`, edge);
  }
  return { nodes: [...nodes.values()], edges: [...edges.values()] };
}

/** The node that an address names, by its id or by its name. */
export function rootOf({ nodes }: Lineage, root: string): LineageNode | undefined {
  return nodes.find(({ id }) => id === root) ?? nodes.find(({ name }) => name === root);
}

/** Of each node, how many edges lead to objects that are not shown. */
export function hidden({ nodes, edges }: Lineage): Map<string, number> {
  const left = new Map(nodes.map(({ id, inputs, outputs }) => [id, inputs + outputs]));
  for (const { from, to } of edges) {
    for (const id of [from, to]) left.set(id, (left.get(id) ?? 0) - 1);
  }
  return left;
}

/** Steps from the root: negative upstream, positive downstream; a node beside is in neither. */
export function steps({ edges }: Lineage, root: string): Map<string, number> {
  const found = new Map([[root, 0]]);
  for (const sign of [-1, 1]) {
    let front = [root];
    for (let distance = 1; front.length > 0; distance++) {
      const next = edges
        .filter((edge) => front.includes(sign < 0 ? edge.to : edge.from))
        .map((edge) => (sign < 0 ? edge.from : edge.to))
        .filter((id) => !found.has(id));
      front = [...new Set(next)];
      for (const id of front) found.set(id, sign * distance);
    }
  }
  return found;
}

/** The nodes that are nearest to the root, and the edges between them. */
export function nearest(whole: Lineage, root: string, most: number): Lineage {
  if (whole.nodes.length <= most) return whole;
  const distance = steps(whole, root);
  const far = (id: string): number => Math.abs(distance.get(id) ?? Number.POSITIVE_INFINITY);
  const nodes = [...whole.nodes].sort((a, b) => Number(far(a.id) > far(b.id)) - Number(far(a.id) < far(b.id)));
  const kept = new Set(nodes.slice(0, most).map(({ id }) => id));
  return {
    nodes: whole.nodes.filter(({ id }) => kept.has(id)),
    edges: whole.edges.filter(({ from, to }) => kept.has(from) && kept.has(to)),
  };
}

/** What colours a node: its state, or that it is behind. */
export function toneOf({ state, lag }: LineageNode): string | undefined {
  if (state === "running" && (lag ?? 0) > BEHIND) return "behind";
  return state ?? undefined;
}
