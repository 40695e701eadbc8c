type Context = { source?: string };
// Newer than the declarations of TypeScript; browsers have had both since spring 2025.
type Raw = { rawJSON?: (source: string) => unknown };
type Reviver = (this: unknown, key: string, value: unknown, context?: Context) => unknown;

// BIGINT and DECIMAL hold numbers that JavaScript's do not: those keep the text that the server sent, and
// are written again as such.
const exact: Reviver = (_key, value, context) => {
  const source = context?.source;
  if (typeof value !== "number" || source === undefined || String(value) === source) return value;
  return (JSON as Raw).rawJSON?.(source) ?? source;
};

/** JSON whose numbers are shown as they were sent, 1.10 and 9007199254740993 included. */
export function parseExact(text: string): unknown {
  return JSON.parse(text, exact as (this: unknown, key: string, value: unknown) => unknown);
}

/** A value as one line of text. */
export function asText(value: unknown): string {
  if (value === null || value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}
