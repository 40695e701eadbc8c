import { Button, Group, Stack, Text } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { lazy, type ReactNode, Suspense, useState } from "react";
import { api, dataOf } from "../api/client";
import { PAGE_SIZE, type Pages, usePages } from "../api/pages";
import { AsCode } from "../parts/AsCode";
import { Confirm } from "../parts/Confirm";
import { Filter } from "../parts/Filter";
import { Empty } from "../parts/Page";
import { type Column, PagedRows } from "../parts/Rows";
import { State } from "../parts/State";
import { localTime } from "../parts/time";
import {
  type Account,
  type AccountKind,
  changeAccount,
  creationForms,
  dropAccount,
  dropForms,
  type Given,
  switchForms,
  words,
} from "./accounts";
import { RoleLinks } from "./links";

const NewAccount = lazy(() => import("./AccountDialogs").then(({ NewAccount: one }) => ({ default: one })));
const EditAccount = lazy(() => import("./AccountDialogs").then(({ EditAccount: one }) => ({ default: one })));

/** People. */
export function Users(): ReactNode {
  const { q } = useSearch({ from: "/inside/access" });
  const pages = usePages(["users", q], (token) =>
    dataOf(api.GET("/v1/users", { params: { query: { q, page_size: PAGE_SIZE, page_token: token } } })),
  );
  const example = { name: "ann@example.com", roles: ["reader"], defaultRole: "", comment: "" };
  return <List kind="user" pages={pages} q={q} example={example} />;
}

/** Programs. */
export function ServiceAccounts(): ReactNode {
  const { q } = useSearch({ from: "/inside/access" });
  const pages = usePages(["service-accounts", q], (token) =>
    dataOf(api.GET("/v1/service-accounts", { params: { query: { q, page_size: PAGE_SIZE, page_token: token } } })),
  );
  const example = { name: "ci", roles: ["reader"], defaultRole: "", comment: "Plans pull requests" };
  return <List kind="service_account" pages={pages} q={q} example={example} />;
}

const columns = (kind: AccountKind, reload: () => void): Column<Account>[] => [
  { head: kind === "user" ? "User" : "Service account", cell: ({ name }) => name, width: 190 },
  { head: "Roles", cell: ({ roles }) => <RoleLinks roles={roles} /> },
  { head: "Default role", width: 120, cell: ({ default_role }) => default_role },
  { head: "State", width: 100, cell: ({ disabled }) => <State state={disabled ? "disabled" : "enabled"} /> },
  { head: "Created", width: 155, cell: ({ created_at }) => localTime(created_at) },
  { head: "Comment", cell: ({ comment }) => comment },
  { head: "Actions", width: 252, cell: (account) => <Actions kind={kind} account={account} done={reload} /> },
];

type ListProps = { kind: AccountKind; pages: Pages<Account>; q: string | undefined; example: Given };

function List({ kind, pages, q, example }: ListProps): ReactNode {
  const navigate = useNavigate({ from: "/access" });
  const client = useQueryClient();
  const [opened, setOpened] = useState(false);
  const reload = (): void => {
    pages.reload();
    void client.invalidateQueries({ queryKey: ["access"] });
  };
  return (
    <Stack gap="sm">
      <Group gap="sm" justify="space-between">
        <Filter
          label="Filter by name"
          value={q}
          change={(value) => void navigate({ search: (old) => ({ ...old, q: value }), replace: true })}
        />
        <Button size="xs" onClick={() => setOpened(true)}>
          {`New ${words(kind)}`}
        </Button>
      </Group>
      <PagedRows
        label={kind === "user" ? "Users" : "Service accounts"}
        columns={columns(kind, reload)}
        pages={pages}
        keyOf={({ id }) => id}
        empty={
          <Empty title={q ? `No ${words(kind)} has ${q} in its name` : `You see no ${words(kind)}`}>
            <Text size="sm" mb="xs">
              Without the privilege MANAGE_MEMBERS you see only your own account. This makes one:
            </Text>
            <AsCode forms={creationForms(kind, example)} />
          </Empty>
        }
      />
      <Suspense fallback={null}>
        {opened && <NewAccount kind={kind} close={() => setOpened(false)} done={reload} />}
      </Suspense>
    </Stack>
  );
}

type ActionProps = { kind: AccountKind; account: Account; done: () => void };

function Actions({ kind, account, done }: ActionProps): ReactNode {
  const { name, disabled } = account;
  const [opened, setOpened] = useState(false);
  return (
    <Group gap={6}>
      <Button size="compact-sm" variant="default" onClick={() => setOpened(true)} aria-label={`Change ${name}`}>
        Change
      </Button>
      <Confirm
        verb={disabled ? "Enable" : "Disable"}
        of={name}
        title={`${disabled ? "Enable" : "Disable"} ${words(kind)} ${name}?`}
        consequence={
          disabled
            ? "Its tokens are accepted again, if they have not ended."
            : "Every server refuses its tokens until it is enabled again. Its objects and queries stay."
        }
        forms={switchForms(kind, account)}
        call={() => changeAccount(kind, account, { disabled: !disabled })}
        done={done}
      />
      <Confirm
        verb="Drop"
        of={name}
        title={`Drop ${words(kind)} ${name}?`}
        consequence="Its tokens are deleted with it, and no server accepts them any more. Objects belong to roles and stay."
        forms={dropForms(kind, name)}
        call={() => dropAccount(kind, name)}
        done={done}
      />
      <Suspense fallback={null}>
        {opened && <EditAccount kind={kind} account={account} close={() => setOpened(false)} done={done} />}
      </Suspense>
    </Group>
  );
}
