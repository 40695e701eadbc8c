// The form of a store is made of the API's own schema: a new kind of store needs no line here.

/** The part of JSON Schema that bodies use. */
export type Schema = {
  $ref?: string;
  type?: string;
  description?: string;
  enum?: string[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  items?: Schema;
  properties?: Record<string, Schema>;
  additionalProperties?: boolean | Schema;
  required?: string[];
  examples?: unknown[];
  maxLength?: number;
  pattern?: string;
  writeOnly?: boolean;
};
export type Document = {
  paths: Record<string, { put?: { requestBody?: { content: Record<string, { schema: Schema }> } } }>;
  components: { schemas: Record<string, Schema> };
};
/** `lines` is a text of several lines, `list` a text for each line, `map` a line `name=value` for each member. */
export type Shape = "text" | "lines" | "choice" | "number" | "boolean" | "list" | "map" | "group";
export type Field = {
  name: string;
  /** JSON pointer into the body, as faults name it. */
  pointer: string;
  shape: Shape;
  help: string;
  required: boolean;
  secret: boolean;
  example: string;
  choices: readonly string[];
  /** The fields of a group. */
  fields: readonly Field[];
};
export type Form = { kinds: readonly Field[]; common: readonly Field[] };
/** Texts by pointer, and which groups are wanted. */
export type Draft = { values: Readonly<Record<string, string>>; open: Readonly<Record<string, boolean>> };
export const NOTHING: Draft = { values: {}, open: {} };

// A text that may be as long as this, and whose line ends no pattern refuses, is a certificate or prose.
const LONG = 1_000;
const RANK: Partial<Record<Shape, number>> = { group: 2 };

/** The kinds of the body of a PUT, each with its fields, and the fields that all of them have. */
export function formOf(document: Document, path: string): Form {
  const content = document.paths[path]?.put?.requestBody?.content;
  const body = resolved(document, content?.["application/json"]?.schema ?? {});
  const kinds = new Set(body.oneOf?.flatMap(({ required }) => required ?? []));
  const fields = fieldsOf(document, body, "#");
  return {
    kinds: fields.filter(({ name }) => kinds.has(name)),
    common: fields.filter(({ name }) => !kinds.has(name)),
  };
}

/** A schema without its reference and without `null`; what is said beside them counts first. */
function resolved(document: Document, schema: Schema): Schema {
  const { $ref: ref, anyOf, ...own } = schema;
  const [only] = anyOf?.filter(({ type }) => type !== "null") ?? [];
  if (only) return { ...resolved(document, only), ...own };
  if (ref === undefined) return own;
  return { ...resolved(document, document.components.schemas[ref.split("/").at(-1) ?? ""] ?? {}), ...own };
}

function fieldsOf(document: Document, schema: Schema, above: string): Field[] {
  const made = Object.entries(schema.properties ?? {}).map(([name, member]): Field => {
    const one = resolved(document, member);
    const pointer = `${above}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
    const [example] = one.examples ?? [];
    return {
      name,
      pointer,
      shape: shapeOf(one),
      help: one.description ?? "",
      required: schema.required?.includes(name) ?? false,
      secret: one.writeOnly ?? false,
      example: typeof example === "string" || typeof example === "number" ? String(example) : "",
      choices: one.enum ?? [],
      fields: fieldsOf(document, one, pointer),
    };
  });
  const rank = ({ required, shape }: Field): number => (required ? 0 : (RANK[shape] ?? 1));
  return made.sort((a, b) => rank(a) - rank(b));
}

function shapeOf(schema: Schema): Shape {
  if (schema.enum) return "choice";
  if (schema.type === "boolean") return "boolean";
  if (schema.type === "integer" || schema.type === "number") return "number";
  if (schema.type === "array") return "list";
  if (schema.properties) return "group";
  if (schema.type === "object") return "map";
  return schema.pattern === undefined && (schema.maxLength ?? 0) > LONG ? "lines" : "text";
}

// What nobody reads as a word.
const SHORT = new Set(["arn", "aws", "ca", "http", "id", "jdbc", "sasl", "ssl", "tls", "uri", "uris", "url"]);

/** A name as a label: `security_protocol` is "Security protocol". */
export function labelOf(name: string): string {
  const words = name
    .split("_")
    .map((word) => (SHORT.has(word) ? word.toUpperCase() : word))
    .join(" ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** What a form begins with for an object that there is. Secrets are not in it: the server shows none. */
export function draftOf(fields: readonly Field[], object: unknown): Draft {
  const values: Record<string, string> = {};
  const open: Record<string, boolean> = {};
  const read = (list: readonly Field[], from: unknown): void => {
    if (typeof from !== "object" || from === null) return;
    for (const field of list) {
      const value = (from as Record<string, unknown>)[field.name];
      if (value === undefined || value === null || field.secret) continue;
      if (field.shape === "group") {
        open[field.pointer] = true;
        read(field.fields, value);
      } else values[field.pointer] = written(field.shape, value);
    }
  };
  read(fields, object);
  return { values, open };
}

function written(shape: Shape, value: unknown): string {
  if (shape === "list" && Array.isArray(value)) return value.map(String).join("\n");
  if (shape === "map") {
    return Object.entries(value as object)
      .map(([name, one]) => `${name}=${one}`)
      .join("\n");
  }
  return String(value);
}

export type Body = { [name: string]: unknown };

/**
 * The object that a draft stands for; what is empty is left out.
 * `secret` gives what stands for a secret instead of its value, for code that is shown.
 */
export function bodyOf(fields: readonly Field[], draft: Draft, secret?: (field: Field) => unknown): Body {
  const body: Body = {};
  for (const field of fields) {
    const { name, pointer, shape } = field;
    if (shape === "group") {
      if (field.required || draft.open[pointer]) body[name] = bodyOf(field.fields, draft, secret);
      continue;
    }
    const text = draft.values[pointer] ?? "";
    // A secret may begin or end with a blank.
    if ((field.secret ? text : text.trim()) === "") continue;
    body[name] = field.secret && secret ? secret(field) : read(shape, field.secret ? text : text.trim());
  }
  return body;
}

function read(shape: Shape, text: string): unknown {
  if (shape === "boolean") return text === "true";
  // What is no number is sent as it is: the server says so at its place.
  if (shape === "number") return /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text;
  const lines = text.split("\n").flatMap((line) => line.trim() || []);
  if (shape === "list") return lines;
  if (shape === "map") {
    return Object.fromEntries(
      lines.map((line) => {
        const [name = "", ...rest] = line.split("=");
        return [name.trim(), rest.join("=").trim()];
      }),
    );
  }
  return text;
}

type Fault = { detail: string; hint?: string | null; pointer?: string | null };

/** Faults by the pointer of the field that shows them: the named one, or the nearest above it that is visible. */
export function place<F extends Fault>(
  fields: readonly Field[],
  draft: Draft,
  faults: readonly F[],
): { at: Record<string, string>; rest: F[] } {
  const shown = new Set<string>();
  const walk = (list: readonly Field[]): void => {
    for (const field of list) {
      shown.add(field.pointer);
      if (field.required || draft.open[field.pointer]) walk(field.fields);
    }
  };
  walk(fields);
  const at: Record<string, string> = {};
  const rest: F[] = [];
  for (const fault of faults) {
    let pointer = fault.pointer ?? "";
    while (pointer !== "" && !shown.has(pointer)) pointer = pointer.slice(0, Math.max(0, pointer.lastIndexOf("/")));
    if (pointer === "") rest.push(fault);
    else {
      const text = [withoutSubject(fault), fault.hint].filter(Boolean).join(" ");
      at[pointer] = at[pointer] ? `${at[pointer]} ${text}` : text;
    }
  }
  return { at, rest };
}

/** What is said against a field, without the field's own name before it. */
function withoutSubject({ detail, pointer }: Fault): string {
  const [all = "", subject = ""] = /^([\w.]+): /.exec(detail) ?? [];
  const path = `.${(pointer ?? "").split("/").slice(1).join(".")}`;
  return subject !== "" && path.endsWith(`.${subject}`) ? detail.slice(all.length) : detail;
}
