import { curl, hclText, pathOf, resource, shell, sqlText } from "../api/code";
import { quoted } from "../api/names";
import type { Schemas } from "../api/problem";
import type { Forms } from "../parts/AsCode";

export type NewFunction = {
  name: string;
  arguments: string;
  returns: string;
  handler: string;
  timeout: number;
  comment: string;
  replace: boolean;
  code: string;
};
export type Field = "name" | "arguments" | "returns" | "handler" | "timeout" | "code";
type Span = { field: Field; from: number; to: number };

/** A function to begin with: that of docs/sql/user-functions.md. */
export const SAMPLE: NewFunction = {
  name: "grade",
  arguments: "points DECIMAL(5, 2), best DECIMAL(5, 2)",
  returns: "VARCHAR",
  handler: "grade",
  timeout: 60,
  comment: "",
  replace: false,
  code: `\
def grade(points, best):
    if points is None:
        return None
    return "A" if points >= best * 9 / 10 else "B"
`,
};

/** The file of a source; a slash would be a directory. */
export const fileOf = (source: string): string => `${source.replace(/[^\w.-]+/g, "_")}.py`;

/** The statements that make a function with its source, and where in them each field of the form stands. */
export function statements(given: NewFunction, content = sqlText(given.code)): { sql: string; spans: Span[] } {
  const create = given.replace ? "CREATE OR REPLACE" : "CREATE";
  const spans: Span[] = [];
  let sql = "";
  const add = (text: string, field?: Field): void => {
    if (field) spans.push({ field, from: sql.length, to: sql.length + text.length });
    sql += text;
  };
  add(`${create} FUNCTION_SOURCE ${quoted(given.name)} WITH ('file' = ${sqlText(fileOf(given.name))}, 'content' = `);
  add(content, "code");
  add(`);\n${create} FUNCTION `);
  add(quoted(given.name), "name");
  add("(");
  add(given.arguments, "arguments");
  add(") RETURNS ");
  add(given.returns, "returns");
  add(" LANGUAGE PYTHON");
  if (given.comment) add(` COMMENT ${sqlText(given.comment)}`);
  add(` WITH ('source.name' = ${sqlText(given.name)}, 'handler' = `);
  add(sqlText(given.handler), "handler");
  add(", 'timeout.seconds' = ");
  add(String(given.timeout), "timeout");
  add(");");
  return { sql, spans };
}

/** The same in the languages that can say it; those of files leave the code in one. */
export function functionForms(given: NewFunction): Forms {
  const { name, handler, returns, timeout, comment } = given;
  const file = fileOf(name);
  const { sql } = statements(given);
  const source = resource("function_source", name, {
    name,
    file,
    content: { hcl: `file(${hclText(file)})` },
  });
  const list = argumentsOf(given.arguments).map(
    (one) => `    { name = ${hclText(one.name)}, type = ${hclText(one.type)} },`,
  );
  const made = resource("function", name, {
    name,
    arguments: { hcl: list.length > 0 ? `[\n${list.join("\n")}\n  ]` : "[]" },
    returns,
    source: { hcl: `${/"(leatstream_\w+)" "([^"]+)"/.exec(source)?.slice(1).join(".")}.name` },
    handler,
    timeout_seconds: timeout,
    comment,
  });
  // `leat sql` sends the file that the statement names.
  const short = statements(given, "").sql.replace(/'file' = '(.*?)', 'content' = \)/, "'file' = '@$1')");
  return {
    sql,
    terraform: `${source}\n\n${made}`,
    curl: curl("POST", "/v1/statements", { sql, atomic: true }),
    leat: `leat sql --atomic ${shell(short)}`,
  };
}

/** Arguments as SQL lists them: commas and blanks within a type part nothing. */
function argumentsOf(list: string): { name: string; type: string }[] {
  const parts: string[] = [];
  let depth = 0;
  let part = "";
  for (const letter of list) {
    if ("(<".includes(letter)) depth += 1;
    if (")>".includes(letter)) depth -= 1;
    if (letter === "," && depth === 0) {
      parts.push(part);
      part = "";
    } else part += letter;
  }
  parts.push(part);
  return parts.flatMap((one) => {
    const [, name, type] = /^\s*("(?:[^"]|"")+"|\S+)\s+(.+?)\s*$/s.exec(one) ?? [];
    if (name === undefined || type === undefined) return [];
    return [{ name: name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : name.toLowerCase(), type }];
  });
}

/** A function as it is called: `grade(points DECIMAL(5, 2))`. */
export function signature({ name, arguments: list }: Schemas["FunctionView"]): string {
  return `${quoted(name)}(${list.map((one) => `${quoted(one.name)} ${one.type}`).join(", ")})`;
}

/** Queries whose statement calls a function. Texts in quotes are not looked at. */
export function callersOf(name: string, queries: readonly Schemas["QueryView"][]): string[] {
  const written = quoted(name).replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const call = new RegExp(`(?<![\\w$."])${written}\\s*\\(`, "i");
  return queries
    .filter(({ statement_canonical: text }) => call.test(text.replace(/'(?:[^']|'')*'/g, "''")))
    .map((query) => query.name);
}

export const isJar = (file: string): boolean => file.endsWith(".jar");

/** The name that a source gets from its file. */
export const nameOf = (file: string): string => file.replace(/\.(py|jar)$/, "").toLowerCase();

/** Terraform's reading of a file of code. */
const read = (file: string): string => `${isJar(file) ? "filebase64" : "file"}(${hclText(file)})`;

/** The command that sends a file. */
const applied = (name: string, file: string, comment?: string | null): string =>
  `leat function-source apply ${shell(quoted(name))} -f ${shell(file)}${comment ? ` --comment ${shell(comment)}` : ""}`;

/** A new source that is a file, as code. */
export function newSourceForms(name: string, file: string, comment: string): Forms {
  const note = comment ? ` COMMENT ${sqlText(comment)}` : "";
  return {
    sql: `-- leat sql sends the file.\nCREATE FUNCTION_SOURCE ${quoted(name)}${note} WITH ('file' = ${sqlText(`@${file}`)});`,
    terraform: resource("function_source", name, { name, file, content: { hcl: read(file) }, comment }),
    leat: applied(name, file, comment),
  };
}

/** A statement to complete that makes a function of a source. */
export function functionOf({ name, language }: { name: string; language: string }): string {
  const java = language.toLowerCase() === "java";
  const entry = java ? "'class.name' = 'package.Class'" : "'handler' = 'name'";
  return `-- Its name, arguments and type are yours.
CREATE FUNCTION f(argument VARCHAR) RETURNS VARCHAR LANGUAGE ${java ? "JAVA" : "PYTHON"}
  WITH ('source.name' = ${sqlText(name)}, ${entry});
`;
}

/** New code for a source, as code. */
export function sourceForms(source: Schemas["FunctionSourceView"], content: string, restart: boolean): Forms {
  const { name, file, comment } = source;
  return {
    terraform: resource("function_source", name, {
      name,
      file,
      content: { hcl: read(file) },
      comment,
      restart_queries: restart ? null : false,
    }),
    curl: curl("PUT", pathOf("function-sources", name), { file, content, comment, restart_queries: restart }),
    leat: `${applied(name, file, comment)}${restart ? "" : " --no-restart"}`,
  };
}
