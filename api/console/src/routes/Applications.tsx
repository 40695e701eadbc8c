import { Button, Group, Text } from "@mantine/core";
import { useNavigate, useSearch } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { api, dataOf } from "../api/client";
import { PAGE_SIZE, usePages } from "../api/pages";
import type { Schemas } from "../api/problem";
import { STATES } from "../api/queries";
import { SAMPLE } from "../applications/sample";
import { usePoll } from "../events/useFeed";
import { AsCode } from "../parts/AsCode";
import { Choice, Filter } from "../parts/Filter";
import { NameLink } from "../parts/Names";
import { Empty, Page } from "../parts/Page";
import { type Column, PagedRows } from "../parts/Rows";
import { State } from "../parts/State";
import { openText } from "../sql/drafts";

const POLL_MS = 5_000;

const COLUMNS: Column<Schemas["ApplicationView"]>[] = [
  { head: "Application", width: 200, cell: ({ name }) => <NameLink kind="application" name={name} /> },
  { head: "State", width: 110, cell: ({ status }) => <State state={status.state} /> },
  { head: "Queries", width: 80, cell: ({ queries }) => queries.length },
  { head: "Version", width: 80, cell: ({ generation }) => generation },
  { head: "Owner", width: 120, cell: ({ owner }) => owner },
  {
    head: "Note",
    cell: ({ status, comment }) => (
      <Text size="sm" lineClamp={2}>
        {status.message ?? comment}
      </Text>
    ),
  },
];

/** Statements that are created, changed and deleted as one. */
export function Applications(): ReactNode {
  const { state, q } = useSearch({ from: "/inside/applications" });
  const navigate = useNavigate({ from: "/applications" });
  const known = STATES.find((one) => one === state);
  const pages = usePages(
    ["applications", q, known],
    (token) =>
      dataOf(
        api.GET("/v1/applications", {
          params: { query: { q, state: known, page_size: PAGE_SIZE, page_token: token } },
        }),
      ),
    usePoll(POLL_MS),
  );
  const write = (): void => {
    openText(SAMPLE);
    void navigate({ to: "/sql" });
  };
  return (
    <Page
      title="Applications"
      actions={
        <Button size="xs" onClick={write}>
          New application
        </Button>
      }
    >
      <Group gap="sm">
        <Filter
          label="Filter by name"
          value={q}
          change={(value) => void navigate({ search: (old) => ({ ...old, q: value }), replace: true })}
        />
        <Choice
          label="State"
          values={STATES}
          value={known}
          change={(value) => void navigate({ search: (old) => ({ ...old, state: value }), replace: true })}
        />
      </Group>
      <PagedRows
        label="Applications"
        columns={COLUMNS}
        pages={pages}
        keyOf={({ id }) => id}
        empty={
          q || known ? (
            <Empty title="No application fits the filter" />
          ) : (
            <Empty title="There is no application that you see">
              <Text size="sm" mb="xs">
                An application is several statements that are created, changed and deleted as one. New application
                opens this text in the SQL editor:
              </Text>
              <AsCode forms={{ sql: SAMPLE, leat: "leat application apply shop -f shop.sql" }} />
            </Empty>
          )
        }
      />
    </Page>
  );
}
