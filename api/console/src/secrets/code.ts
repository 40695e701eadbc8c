import { curl, hclText, identifier, pathOf, resource, shell, sqlText } from "../api/code";
import { quoted } from "../api/names";
import type { Schemas } from "../api/problem";
import type { Forms } from "../parts/AsCode";

// What stands for the value wherever it would be shown.
const HIDDEN = "…";

export type NewSecret = { name: string; value: string; comment: string };

/** The statement that makes a secret; without `value` it shows none. */
export function creation({ name, comment }: NewSecret, value = HIDDEN): string {
  const note = comment ? ` COMMENT ${sqlText(comment)}` : "";
  return `CREATE SECRET ${quoted(name)}${note} WITH ('type' = 'generic_string', 'secret_string' = ${sqlText(value)});`;
}

/** The statement that gives a secret another value. */
export const rotation = (name: string, value = HIDDEN): string =>
  `UPDATE SECRET ${quoted(name)} WITH ('secret_string' = ${sqlText(value)});`;

export function secretForms(given: NewSecret): Forms {
  const { name, comment } = given;
  const variable = identifier(name);
  return {
    sql: creation(given),
    terraform: [
      `variable "${variable}" {\n  type      = string\n  sensitive = true\n  ephemeral = true\n}`,
      resource("secret", name, { name, comment, value_wo: { hcl: `var.${variable}` }, value_wo_version: 1 }),
    ].join("\n\n"),
    curl: curl("PUT", pathOf("secrets", name), { value: HIDDEN, comment: comment || null }),
    // In a file: arguments stand in the history of the shell and in the process list.
    leat: `leat sql -f ${fileOf(name)}`,
  };
}

export function rotationForms({ name, version }: Schemas["SecretView"]): Forms {
  return {
    sql: rotation(name),
    terraform: `# In resource "leatstream_secret" whose name is ${hclText(name)}:\nvalue_wo_version = ${version + 1}`,
    leat: `leat sql -f ${fileOf(name)}`,
  };
}

/** The restart of what uses a secret. */
export const applyForms = (name: string): Forms => ({
  leat: `leat secret apply ${shell(quoted(name))}`,
  curl: curl("POST", `${pathOf("secrets", name)}:apply`),
});

const fileOf = (name: string): string => `${identifier(name)}.sql`;

type Store = Schemas["StoreView"];
type Registry = Schemas["SchemaRegistryView"];
export type Uses = { stores: string[]; registries: string[] };

/** The stores and schema registries that use a secret. */
export function usesOf(secret: string, stores: readonly Store[], registries: readonly Registry[]): Uses {
  return {
    stores: stores.filter((store) => secretsOf(store).includes(secret)).map(({ name }) => name),
    registries: registries.filter(({ password_secret: named }) => named === secret).map(({ name }) => name),
  };
}

/** The names of secrets in a store's settings, at any depth: those of Kafka stand below `sasl` and `tls`. */
function secretsOf(store: Store): unknown[] {
  const named = (settings: unknown): unknown[] =>
    typeof settings === "object" && settings !== null
      ? Object.entries(settings).flatMap(([key, value]) => (key.endsWith("_secret") ? [value] : named(value)))
      : [];
  return named(store[store.kind as keyof Store]);
}

/** What the server would restart, to see it before: queries that shall run and connect with a secret. */
export function queriesOf(
  { stores: own, registries }: Uses,
  stores: readonly Store[],
  queries: readonly Schemas["QueryView"][],
): string[] {
  const through = stores.filter(({ schema_registry: named }) => named && registries.includes(named));
  const found = new Set([...own, ...through.map(({ name }) => name)]);
  return queries
    .filter(({ desired_state: wanted }) => wanted === "running")
    .filter(({ plan }) => plan && [...plan.sources, plan.sink].some(({ store }) => found.has(store)))
    .map(({ name }) => name);
}
