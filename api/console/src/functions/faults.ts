import type { Diagnostic } from "@codemirror/lint";
import type { FaultView } from "../api/problem";
import { unitsAt } from "../sql/positions";
import type { Field, statements } from "./code";

type Fault = Pick<FaultView, "code" | "detail" | "hint" | "position" | "pointer">;
export type Placed = { fields: Partial<Record<Field, string>>; marks: Diagnostic[]; rest: Fault[] };

/** Faults of the statements, each at the field of the form that it is about. */
export function place(faults: readonly Fault[], made: ReturnType<typeof statements>, code: string): Placed {
  const placed: Placed = { fields: {}, marks: [], rest: [] };
  for (const fault of faults) {
    const text = [fault.detail, fault.hint].filter(Boolean).join(" ");
    const field = fieldOf(fault, made);
    const mark = field === undefined || field === "code" ? lineMark(fault.detail, text, code) : undefined;
    if (mark) placed.marks.push(mark);
    if (field !== undefined && field !== "code") placed.fields[field] = text;
    else placed.rest.push(fault);
  }
  return placed;
}

function fieldOf(
  { code, position, pointer, detail }: Fault,
  { sql, spans }: ReturnType<typeof statements>,
): Field | undefined {
  if (code === "already-exists") return "name";
  if (pointer === "#/timeout_seconds") return "timeout";
  if (/no top-level function or class/.test(detail)) return "handler";
  if (!position) return undefined;
  const from = unitsAt(sql, position.offset);
  const to = unitsAt(sql, position.offset + position.length);
  // A position as long as a statement says nothing of a field.
  return spans.find((span) => span.from <= from && to <= span.to)?.field;
}

/** The line of the code that a message names. */
export function lineMark(detail: string, message: string, code: string): Diagnostic | undefined {
  const line = Number(/\bline (\d+)\b/.exec(detail)?.[1]);
  const lines = code.split("\n");
  if (!(line >= 1 && line <= lines.length)) return undefined;
  const from = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
  const to = Math.min(code.length, from + Math.max(1, lines[line - 1]?.length ?? 0));
  return { from: Math.min(from, to), to, severity: "error", message };
}
