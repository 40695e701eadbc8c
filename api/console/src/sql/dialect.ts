import type { Completion } from "@codemirror/autocomplete";
import { SQLDialect } from "@codemirror/lang-sql";
import functionList from "../../../leatstream/sql/function_list.txt?raw";

const KEYWORDS = `
all alter and any as asc between by case cast create cross current_date current_timestamp desc distinct else end escape
except exists false from full group having ilike in inner insert into intersect is join left like limit natural not null
on or order outer over primary right rlike rows select set then true union update using values when where with
after application atomic avro batch beginning bytes changelog changelogs clickhouse cumulate database databases
delete describe descriptor_source descriptor_sources drop earliest emit entities entity every file function functions
function_source function_sources grouping header hop hours iceberg if interval json key kinesis kafka latest list lookup
match_recognize materialized measures milliseconds minutes offset pattern postgres print protobuf queries query
relations replace resume restart role savepoint savepoints schema schema_registries schema_registry schemas
seconds secret secrets session sets skip store stores stream streams table tables terminate tumble unnest use
version view views watermark window within
`;
const TYPES = `
array bigint binary boolean bytes date decimal double float int integer map real row smallint string struct time timestamp
timestamp_ltz tinyint varbinary varchar
`;

/** Functions by name, with their signature and meaning, as the server's own list has them. */
export const FUNCTIONS: readonly Completion[] = readFunctions(functionList);

/** What highlighting and completion know of the language. */
export const dialect = SQLDialect.define({
  keywords: KEYWORDS,
  types: TYPES,
  builtin: FUNCTIONS.map(({ label }) => label).join(" "),
  backslashEscapes: false,
  doubleQuotedStrings: false,
  identifierQuotes: '"`',
  spaceAfterDashes: false,
});

function readFunctions(list: string): Completion[] {
  const found = new Map<string, Completion>();
  for (const line of list.split("\n")) {
    const name = /^([a-z_][a-z0-9_]*)\(/i.exec(line)?.[1];
    if (name === undefined || found.has(name)) continue;
    const [signature = "", info = ""] = line.split(" | ", 2);
    found.set(name, { label: name, type: "function", detail: signature.slice(name.length), info });
  }
  return [...found.values()];
}
