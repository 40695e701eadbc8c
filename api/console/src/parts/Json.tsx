import { type ReactNode, useState } from "react";
import { asText } from "../api/exact";

/** A value on one line; an object or a list opens, part by part. */
export function Json({ value }: { value: unknown }): ReactNode {
  const [open, setOpen] = useState(false);
  const parts = partsOf(value);
  if (parts.length === 0) return <span className="mono">{asText(value)}</span>;
  return (
    <details className="json" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary className="mono">{asText(value)}</summary>
      {open && (
        <ul>
          {parts.map(([name, part]) => (
            <li key={name}>
              <span className="name">{`${name}:`}</span>{" "}
              <Json value={typeof part === "string" ? JSON.stringify(part) : (part ?? "null")} />
            </li>
          ))}
        </ul>
      )}
    </details>
  );
}

/** The parts of an object or a list. A number that JavaScript cannot hold is an object without a prototype. */
function partsOf(value: unknown): [string, unknown][] {
  if (typeof value !== "object" || value === null || Object.getPrototypeOf(value) === null) return [];
  return Object.entries(value);
}
