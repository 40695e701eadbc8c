import type { Diagnostic } from "@codemirror/lint";
import type { FaultView } from "../api/problem";

/** Where a text's code point number `offset` begins: the server counts those, the browser UTF-16 units. */
export function unitsAt(text: string, offset: number): number {
  let units = 0;
  for (const point of text) {
    if (offset <= 0) break;
    units += point.length;
    offset -= 1;
  }
  return units;
}

/** Faults that have a place in the text, as marks of the editor; `shift` is where the checked part begins. */
export function marksOf(faults: readonly FaultView[], text: string, shift = 0): Diagnostic[] {
  return faults.flatMap((fault) => {
    if (!fault.position) return [];
    const { offset, length } = fault.position;
    const from = Math.min(unitsAt(text, offset), text.length);
    const to = Math.min(Math.max(unitsAt(text, offset + length), from + 1), text.length);
    const message = [fault.detail, fault.hint].filter(Boolean).join("\n");
    return [{ from: shift + Math.min(from, to), to: shift + to, severity: "error" as const, message }];
  });
}
