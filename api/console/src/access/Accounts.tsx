import { Stack, Text } from "@mantine/core";
import { useNavigate, useSearch } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { api, dataOf } from "../api/client";
import { PAGE_SIZE, type Pages, usePages } from "../api/pages";
import type { Schemas } from "../api/problem";
import { Filter } from "../parts/Filter";
import { Empty, Source } from "../parts/Page";
import { type Column, PagedRows } from "../parts/Rows";
import { localTime } from "../parts/time";
import { RoleLinks } from "./links";

type Account = Schemas["AccountView"];

const columns = (noun: string): Column<Account>[] => [
  { head: noun, cell: ({ name }) => name, width: 200 },
  { head: "Roles", cell: ({ roles }) => <RoleLinks roles={roles} /> },
  { head: "Default role", width: 130, cell: ({ default_role }) => default_role },
  { head: "Tokens", width: 100, cell: ({ disabled }) => (disabled ? "are refused" : "are accepted") },
  { head: "Created", width: 160, cell: ({ created_at }) => localTime(created_at) },
  { head: "Comment", cell: ({ comment }) => comment },
];

/** People. */
export function Users(): ReactNode {
  const { q } = useSearch({ from: "/inside/access" });
  const pages = usePages(["users", q], (token) =>
    dataOf(api.GET("/v1/users", { params: { query: { q, page_size: PAGE_SIZE, page_token: token } } })),
  );
  return (
    <List
      noun="User"
      pages={pages}
      q={q}
      empty="There is no user"
      example={`CREATE USER "ann@example.com" WITH ('roles' = 'reader');`}
    />
  );
}

/** Programs. */
export function ServiceAccounts(): ReactNode {
  const { q } = useSearch({ from: "/inside/access" });
  const pages = usePages(["service-accounts", q], (token) =>
    dataOf(api.GET("/v1/service-accounts", { params: { query: { q, page_size: PAGE_SIZE, page_token: token } } })),
  );
  return (
    <List
      noun="Service account"
      pages={pages}
      q={q}
      empty="There is no service account"
      example="CREATE SERVICE_ACCOUNT ci COMMENT 'Plans pull requests' WITH ('roles' = 'reader');"
    />
  );
}

type ListProps = { noun: string; pages: Pages<Account>; q: string | undefined; empty: string; example: string };

function List({ noun, pages, q, empty, example }: ListProps): ReactNode {
  const navigate = useNavigate({ from: "/access" });
  return (
    <Stack gap="sm">
      <Filter
        label="Filter by name"
        value={q}
        change={(value) => void navigate({ search: (old) => ({ ...old, q: value }), replace: true })}
      />
      <PagedRows
        label={`${noun}s`}
        columns={columns(noun)}
        pages={pages}
        keyOf={({ id }) => id}
        empty={
          <Empty title={q ? `No ${noun.toLowerCase()} has ${q} in its name` : empty}>
            <Text size="sm" mb="xs">
              Without the privilege MANAGE_MEMBERS you see only your own account. This statement makes one:
            </Text>
            <Source text={example} label="Example" />
          </Empty>
        }
      />
    </Stack>
  );
}
