import { quoted } from "./names";

/** A text as SQL writes it. */
export const sqlText = (value: string): string => `'${value.replaceAll("'", "''")}'`;
/** A word of a shell's command, whatever it holds. */
export const shell = (value: string): string => `'${value.replaceAll("'", `'\\''`)}'`;
/** A text as Terraform writes it. */
export const hclText = (value: string): string =>
  `"${value.replace(/[\\"]/g, "\\$&").replaceAll("\n", "\\n").replaceAll("${", "$${").replaceAll("%{", "%%{")}"`;

type Member = string | number | boolean | null | undefined | { readonly hcl: string };

/** A Terraform resource; members without a value are left out, and those that are expressions stay as they are. */
export function resource(kind: string, label: string, members: Record<string, Member>): string {
  const given = Object.entries(members).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const width = Math.max(...given.map(([name]) => name.length));
  const lines = given.map(([name, value]) => `  ${name.padEnd(width)} = ${written(value)}`);
  return `resource "leatstream_${kind}" "${identifier(label)}" {\n${lines.join("\n")}\n}`;
}

function written(value: Member): string {
  if (typeof value === "string") return hclText(value);
  return typeof value === "object" && value !== null ? value.hcl : String(value);
}

/** A name that Terraform accepts, made of any text. */
export const identifier = (label: string): string =>
  label.replace(/[^A-Za-z0-9_-]+/g, "_").replace(/^(?=[^A-Za-z_])/, "_");

/** A request as a command; the token is in a file, as in docs/rest.md. */
export function curl(method: string, path: string, body?: unknown): string {
  const verb = method === "GET" ? "" : ` -X ${method}`;
  // In double quotes, so that the shell fills in URL: what the path holds must mean nothing there.
  const address = `"$URL${path.replace(/[\\"$`]/g, "\\$&")}"`;
  const json = body === undefined ? "" : ` \\\n  --json ${shell(JSON.stringify(body))}`;
  return `curl --fail-with-body -H @auth.header${verb} ${address}${json}`;
}

/** The path of an object of a collection, such as `/v1/secrets/pw`. */
export const pathOf = (collection: string, name: string): string =>
  `/v1/${collection}/${encodeURIComponent(quoted(name))}`;
