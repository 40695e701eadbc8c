import type { ReactNode } from "react";
import { asText } from "../api/exact";
import type { Schemas } from "../api/problem";
import { Origin } from "./Origin";
import { type Column, Rows } from "./Rows";

type Effective = Record<string, Schemas["EffectiveView"]>;
type Row = [string, Schemas["EffectiveView"]];

const COLUMNS: Column<Row>[] = [
  { head: "Property", width: 190, cell: ([name]) => name },
  { head: "Value", cell: ([, { value }]) => <span className="mono">{asText(value)}</span> },
  { head: "Origin", cell: ([, { origin, from }]) => <Origin origin={origin} from={from} /> },
];

/** Properties in force, each with the rule that gave it. */
export function Properties({ effective }: { effective: Effective }): ReactNode {
  return <Rows label="Properties" columns={COLUMNS} items={Object.entries(effective)} keyOf={([name]) => name} />;
}

type ColumnRow = { name: string; type: string; not_null?: boolean; comment?: string | null };

/** The columns of a relation. */
export function Columns({
  columns,
  keys = [],
}: {
  columns: readonly ColumnRow[];
  keys?: readonly string[];
}): ReactNode {
  const shown: Column<ColumnRow>[] = [
    { head: "Column", cell: (column) => column.name },
    { head: "Type", cell: (column) => <span className="mono">{column.type}</span> },
    {
      head: "Notes",
      cell: (column) =>
        [keys.includes(column.name) && "primary key", column.not_null && "not null", column.comment]
          .filter(Boolean)
          .join(", "),
    },
  ];
  return <Rows label="Columns" columns={shown} items={columns} keyOf={(column) => column.name} />;
}
