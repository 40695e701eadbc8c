import { getNodesBounds, type ReactFlowInstance } from "@xyflow/react";
import type { CardNode } from "./Graph";

// Smaller text than at this zoom cannot be read.
export const FIT = { maxZoom: 1.15, minZoom: 0.7 };
export const MARGIN = 0.04;
const EDGE = 14;

/**
 * The whole drawing if its texts stay readable; else from its chosen box, or from its beginning on the left.
 * Returns whether something is outside the frame.
 */
export function overview(
  flow: Pick<ReactFlowInstance<never>, "setViewport">,
  nodes: readonly CardNode[],
  frame: HTMLElement,
): boolean {
  const { clientWidth: width, clientHeight: height } = frame;
  if (nodes.length === 0 || width === 0) return false;
  const all = getNodesBounds([...nodes]);
  const whole = Math.min((width - 2 * EDGE) / all.width, (height - 2 * EDGE) / all.height);
  const zoom = Math.min(Math.max(whole, FIT.minZoom), FIT.maxZoom);
  const first = nodes.reduce((a, b) => (b.position.x < a.position.x ? b : a));
  const focus = getNodesBounds([nodes.find(({ data }) => data.chosen) ?? first]);
  const along = (start: number, size: number, at: number, room: number): number => {
    if (size * zoom <= room - 2 * EDGE) return (room - size * zoom) / 2 - start * zoom;
    // No empty ground beside the drawing.
    return Math.min(EDGE - start * zoom, Math.max(room / 2 - at * zoom, room - EDGE - (start + size) * zoom));
  };
  void flow.setViewport({
    x: along(all.x, all.width, focus.x + focus.width / 2, width),
    y: along(all.y, all.height, focus.y + focus.height / 2, height),
    zoom,
  });
  return whole < zoom;
}
