import { Anchor, Button, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { api, dataOf } from "../api/client";
import { quoted } from "../api/names";
import { PAGE_SIZE, usePages } from "../api/pages";
import type { Schemas } from "../api/problem";
import { Empty, Page } from "../parts/Page";
import { type Column, PagedRows } from "../parts/Rows";
import { State } from "../parts/State";
import { age } from "../parts/time";

const COLUMNS: Column<Schemas["StoreView"]>[] = [
  {
    head: "Store",
    cell: (store) => (
      <Anchor component={Link} to="/stores/$store" params={{ store: quoted(store.name) } as never} size="sm">
        {store.name}
      </Anchor>
    ),
  },
  { head: "Kind", width: 130, cell: (store) => store.kind },
  { head: "State", width: 110, cell: ({ status }) => <State state={status.state} /> },
  { head: "Asked", width: 90, cell: ({ status }) => (status.checked_at ? `${age(status.checked_at)} ago` : "never") },
  {
    head: "Note",
    cell: ({ status, comment }) => (
      <Text size="sm" lineClamp={2}>
        {status.message ?? comment}
      </Text>
    ),
  },
];

/** All stores with their kind and whether they answered when last asked. */
export function Stores(): ReactNode {
  const pages = usePages(["stores"], (token) =>
    dataOf(api.GET("/v1/stores", { params: { query: { page_size: PAGE_SIZE, page_token: token } } })),
  );
  return (
    <Page
      title="Stores"
      actions={
        <Button component={Link} to="/new-store" size="xs">
          New store
        </Button>
      }
    >
      <PagedRows
        label="Stores"
        columns={COLUMNS}
        pages={pages}
        keyOf={(store) => store.id}
        empty={
          <Empty title="There is no store yet">
            <Text size="sm">
              A store is a system of yours that holds records.{" "}
              <Anchor component={Link} to="/new-store" inherit underline="always">
                Create one by a form
              </Anchor>
              , or declare it by SQL, REST or Terraform.
            </Text>
          </Empty>
        }
      />
    </Page>
  );
}
