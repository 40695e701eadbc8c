import { Text } from "@mantine/core";
import type { ReactNode } from "react";
import { api, dataOf } from "../api/client";
import { PAGE_SIZE, usePages } from "../api/pages";
import type { Schemas } from "../api/problem";
import { NameLink } from "../parts/Names";
import { Empty, Page, Source } from "../parts/Page";
import { type Column, PagedRows } from "../parts/Rows";

const EXAMPLE = "CREATE SCHEMA_REGISTRY sr WITH ('type' = CONFLUENT, 'uris' = 'https://registry.example.com:8081');";

const COLUMNS: Column<Schemas["SchemaRegistryView"]>[] = [
  { head: "Schema registry", cell: ({ name }) => <NameLink kind="registry" name={name} /> },
  { head: "Type", width: 150, cell: ({ type }) => type },
  { head: "Addresses", cell: ({ uris }) => <span className="break">{uris}</span> },
  { head: "User", width: 130, cell: ({ username }) => username },
  { head: "Comment", cell: ({ comment }) => comment },
];

/** All schema registries. */
export function Registries(): ReactNode {
  const pages = usePages(["registries"], (token) =>
    dataOf(api.GET("/v1/schema-registries", { params: { query: { page_size: PAGE_SIZE, page_token: token } } })),
  );
  return (
    <Page title="Schema registries">
      <PagedRows
        label="Schema registries"
        columns={COLUMNS}
        pages={pages}
        keyOf={({ id }) => id}
        empty={
          <Empty title="There is no schema registry yet">
            <Text size="sm" mb="xs">
              A schema registry keeps the schemas of Avro, Protobuf and JSON Schema records. Stores name theirs.
              Declare it by SQL, REST or Terraform:
            </Text>
            <Source label="Example" text={EXAMPLE} />
          </Empty>
        }
      />
    </Page>
  );
}
