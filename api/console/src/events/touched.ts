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
  application: "applications",
  function: "functions",
  secret: "secrets",
  schema_registry: "registries",
};
const FLOWING = ["query", "relation", "store"];
const NAMED = ["database", "schema", "store", "relation"];

/** Beginnings of the keys of the requests whose answers a change has made old. */
export function touchedBy({ kind, name, type }: Change): Key[] {
  const pages = PAGES[kind];
  const found: Key[] = pages === undefined ? [] : [["pages", pages]];
  if (FLOWING.includes(kind)) found.push([kind, name], ["lineage"]);
  // The state of an application is that of its queries.
  if (kind === "query") found.push(["flow"], ["pages", "applications"], ["application"]);
  if (kind === "query" && type !== "state") found.push(["queries"]);
  if (kind === "application") found.push([kind, name]);
  if (kind === "function" || kind === "function_source") found.push(["functions"], ["export"]);
  if (kind === "secret") found.push(["secrets", "one", name]);
  if (kind === "schema_registry") found.push(["registry", name]);
  if ((kind === "store" || kind === "schema_registry") && type !== "state") found.push(["secrets", "users"]);
  if (kind === "role") found.push(["access"], ["me"]);
  if (kind === "user" || kind === "service_account") found.push(["access"]);
  if (type !== "state") found.push(["export", kind === "relation" ? name : `${kind}:${name}`]);
  if (NAMED.includes(kind) && type !== "state") found.push(["names"]);
  return found;
}
