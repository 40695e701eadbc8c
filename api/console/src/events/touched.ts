import type { Change } from "./feed";

type Key = readonly unknown[];
const PAGES: Partial<Record<Change["kind"], string>> = {
  database: "databases",
  schema: "schemas",
  store: "stores",
  relation: "relations",
  query: "queries",
  role: "roles",
  user: "users",
  service_account: "service-accounts",
};
const FLOWING = ["query", "relation", "store"];
const NAMED = ["database", "schema", "store", "relation"];

/** Beginnings of the keys of the requests whose answers a change has made old. */
export function touchedBy({ kind, name, type }: Change): Key[] {
  const pages = PAGES[kind];
  const found: Key[] = pages === undefined ? [] : [["pages", pages]];
  if (FLOWING.includes(kind)) found.push([kind, name], ["lineage"]);
  if (kind === "query") found.push(["flow"]);
  if (kind === "role") found.push(["access"], ["me"]);
  if (kind === "user" || kind === "service_account") found.push(["access"]);
  if (type !== "state") found.push(["export", `${kind}:${name}`]);
  if (NAMED.includes(kind) && type !== "state") found.push(["names"]);
  return found;
}
