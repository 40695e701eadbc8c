import type { ReactNode } from "react";
import { diff } from "./diff";

/** What changed from one text to another, line by line. */
export function Diff({ before, after, label }: { before: string; after: string; label: string }): ReactNode {
  return (
    <section className="source" aria-label={label} tabIndex={0}>
      <pre className="diff">
        {diff(before, after).map(({ sign, text }, index) => (
          <span key={index} data-sign={sign}>{`${sign} ${text}\n`}</span>
        ))}
      </pre>
    </section>
  );
}
