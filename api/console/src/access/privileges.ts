import type { Schemas } from "../api/problem";

export type GrantView = Schemas["GrantBody"];
export type Kind = GrantView["on"];
export type Privilege = GrantView["privilege"];

const ENTITY: Privilege[] = ["read_entity", "write_entity", "create_entity", "drop_entity"];

/** Which privileges there are on a kind of object. A test compares them with the server's. */
export const PRIVILEGES: Record<Kind, readonly Privilege[]> = {
  organization: [
    "create_database",
    "create_store",
    "create_secret",
    "create_schema_registry",
    "create_descriptor_source",
    "create_function",
    "create_query",
    "create_application",
    "use_machine_credentials",
    "monitor",
    "manage_members",
    "manage_grants",
    "audit",
  ],
  database: ["usage", "create_schema", "modify", "ownership"],
  schema: ["usage", "create_relation", "modify", "ownership"],
  relation: ["select", "insert", "modify", "ownership"],
  store: ["usage", ...ENTITY, "modify", "ownership"],
  secret: ["usage", "modify", "ownership"],
  schema_registry: ["usage", "modify", "ownership"],
  descriptor_source: ["usage", "modify", "ownership"],
  function_source: ["usage", "ownership"],
  function: ["usage", "ownership"],
  query: ["monitor", "operate", "ownership"],
  application: ["monitor", "operate", "ownership"],
};

export const plural = (kind: string): string => (kind.endsWith("y") ? `${kind.slice(0, -1)}ies` : `${kind}s`);
const words = (text: string): string => text.replaceAll("_", " ");

/** What a grant is on, in words. */
export function targetOf(grant: GrantView): string {
  if (grant.on === "organization") return "the organization";
  if (grant.name) {
    const entities = grant.entities ? `, entities ${grant.entities}` : "";
    return `${words(grant.on)} ${grant.name}${entities}`;
  }
  const place = grant.in_schema
    ? ` in schema ${grant.in_schema}`
    : grant.in_database
      ? ` in database ${grant.in_database}`
      : "";
  return `all ${words(plural(grant.on))}${place}`;
}

/** Whether a grant counts for an object: it names it, or it is on all of its kind there. */
export function covers(grant: GrantView, on: Kind, name: string): boolean {
  if (grant.on !== on) return false;
  if (grant.name) return grant.name === name;
  const place = grant.in_schema ?? grant.in_database;
  return !place || name.startsWith(`${place}.`);
}

/** What names a grant's object in a path's query. */
export function queryOf(grant: GrantView): Partial<Record<(typeof PLACES)[number], string>> {
  return Object.fromEntries(PLACES.flatMap((member) => (grant[member] ? [[member, grant[member]]] : [])));
}
const PLACES = ["name", "in_database", "in_schema", "entities"] as const;

/** What distinguishes one grant of a role from the others. */
export function keyOf(grant: GrantView): string {
  return `${grant.privilege} ${targetOf(grant)}`;
}
