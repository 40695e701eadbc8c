const PLAIN = /^[a-z_][a-z0-9_$]*$/;

/** A name as SQL and paths write it: plain where it may stand so, else in double quotes. */
export function quoted(name: string): string {
  return PLAIN.test(name) ? name : `"${name.replaceAll('"', '""')}"`;
}

/** A node of the lineage that is an entity has the name `store/entity`; the store may be quoted. */
export function entityParts(name: string): { store: string; entity: string } {
  const [store = ""] = /^(?:"(?:[^"]|"")+"|[^/]*)/.exec(name) ?? [];
  return { store, entity: name.slice(store.length + 1) };
}

/** A full name without database and schema; one with quotes stays whole. */
export function shortName(fqn: string): string {
  return fqn.replace(/^[^."]+\.[^."]+\./, "");
}
