type Context = { source?: string };
type Reviver = (this: unknown, key: string, value: unknown, context?: Context) => unknown;

// BIGINT and DECIMAL hold numbers that JavaScript's do not: those keep the text that the server sent.
const exact: Reviver = (_key, value, context) => {
  const source = context?.source;
  return typeof value === "number" && source !== undefined && !same(value, source) ? source : value;
};

function same(value: number, source: string): boolean {
  return String(value) === source;
}

/** JSON whose numbers are shown as they were sent, 1.10 and 9007199254740993 included. */
export function parseExact(text: string): unknown {
  return JSON.parse(text, exact as (this: unknown, key: string, value: unknown) => unknown);
}

/** A value as one line of text. */
export function asText(value: unknown): string {
  if (value === null || value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}
