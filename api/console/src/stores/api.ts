import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../api/client";
import { curl, hclText, identifier, pathOf, shell } from "../api/code";
import { quoted } from "../api/names";
import { errorOf, type Schemas, unreachable } from "../api/problem";
import type { Forms } from "../parts/AsCode";
import { type Body, bodyOf, type Document, type Draft, type Field, type Form, formOf } from "./fields";

const PATH = "/v1/stores/{store}";
const HIDDEN = "…";

/** The form of a store, by the server's own description of its API. */
export function useStoreForm(): UseQueryResult<Form> {
  return useQuery({
    queryKey: ["openapi", PATH],
    queryFn: async () => {
      const answer = await fetch("/openapi.json").catch(() => {
        throw unreachable();
      });
      if (!answer.ok) throw await errorOf(answer);
      return formOf((await answer.json()) as Document, PATH);
    },
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** Creates a store; one of this name is not replaced. With a `generation` it changes that one, and no later one. */
export function putStore(name: string, body: Body, generation?: number): Promise<Schemas["StoreView"]> {
  return sendStore(name, body, generation);
}

function sendStore(
  name: string,
  body: Body,
  generation: number | undefined,
  query?: { dry_run: boolean },
): Promise<Schemas["StoreView"]> {
  const header = generation === undefined ? { "If-None-Match": "*" as const } : { "If-Match": `"${generation}"` };
  return dataOf(
    // The server checks the body: the form knows its schema at run time only.
    api.PUT("/v1/stores/{store}", { params: { path: { store: quoted(name) }, query, header }, body: body as never }),
  );
}

/** What the status of such a store would be: the server connects with these settings and keeps nothing. */
export function tryStore(name: string, body: Body, generation?: number): Promise<Schemas["StoreView"]> {
  return sendStore(name, body, generation, { dry_run: true });
}

/** The whole body of a PUT. */
export function storeBody({ common }: Form, kind: Field, draft: Draft, secret?: (field: Field) => unknown): Body {
  return { [kind.name]: bodyOf(kind.fields, draft, secret), ...bodyOf(common, draft, secret) };
}

/** What the form does, as code. Its secrets are variables in Terraform, and left to fill in elsewhere. */
export function storeForms(form: Form, kind: Field, name: string, draft: Draft): Forms {
  const body = storeBody(form, kind, draft, () => HIDDEN);
  const file = `${identifier(name)}.json`;
  return {
    terraform: terraform(form, kind, name, draft),
    curl: curl("PUT", pathOf("stores", name), body),
    // In a file: arguments stand in the history of the shell and in the process list.
    leat: `cat > ${file} <<'EOF'\n${JSON.stringify(body, null, 2)}\nEOF\nleat store apply ${shell(quoted(name))} -f ${file}`,
  };
}

class Variable {
  constructor(readonly name: string) {}
}

function terraform(form: Form, kind: Field, name: string, draft: Draft): string {
  const label = identifier(name);
  const variables: string[] = [];
  const body = storeBody(form, kind, draft, ({ pointer }) => {
    const variable = identifier([label, ...pointer.split("/").slice(2)].join("_"));
    variables.push(variable);
    return new Variable(variable);
  });
  return [
    ...variables.map((one) => `variable "${one}" {\n  type      = string\n  ephemeral = true\n}`),
    `resource "leatstream_store" "${label}" ${block({ name, ...body }, "")}`,
  ].join("\n\n");
}

/** An object as Terraform formats it: the equal signs of neighbours with one line stand below each other. */
function block(object: Body, indent: string): string {
  if (Object.keys(object).length === 0) return "{}";
  const inner = `${indent}  `;
  const lines: [string, string][] = Object.entries(object).map(([name, value]) =>
    value instanceof Variable ? [`${name}_wo`, `var.${value.name}`] : [name, hcl(value, inner)],
  );
  const width = (index: number): number => {
    const [, value = "\n"] = lines[index] ?? [];
    if (value.includes("\n")) return lines[index]?.[0].length ?? 0;
    let [from, to] = [index, index];
    while (from > 0 && !lines[from - 1]?.[1].includes("\n")) from -= 1;
    while (to < lines.length - 1 && !lines[to + 1]?.[1].includes("\n")) to += 1;
    return Math.max(...lines.slice(from, to + 1).map(([name]) => name.length));
  };
  const text = lines.map(([name, value], index) => `${inner}${name.padEnd(width(index))} = ${value}`).join("\n");
  return `{\n${text}\n${indent}}`;
}

function hcl(value: unknown, indent: string): string {
  if (Array.isArray(value)) return `[${value.map((one) => hcl(one, indent)).join(", ")}]`;
  if (typeof value === "object" && value !== null) return block(value as Body, indent);
  return typeof value === "string" ? hclText(value) : String(value);
}
