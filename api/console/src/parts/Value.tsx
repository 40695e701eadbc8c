import type { ReactNode } from "react";
import { asText } from "../api/exact";

/** A value of a row; NULL differs from a text of that spelling. */
export function Value({ of }: { of: unknown }): ReactNode {
  if (of === null || of === undefined) return <span className="null">null</span>;
  return <span className="mono">{asText(of)}</span>;
}
