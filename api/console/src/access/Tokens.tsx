import { Button, Group, Stack, Text } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { lazy, type ReactNode, Suspense, useState } from "react";
import { api, dataOf } from "../api/client";
import { quoted } from "../api/names";
import { PAGE_SIZE, usePages } from "../api/pages";
import type { Schemas } from "../api/problem";
import { Confirm } from "../parts/Confirm";
import { Filter } from "../parts/Filter";
import { Empty } from "../parts/Page";
import { type Column, PagedRows } from "../parts/Rows";
import { age, localTime } from "../parts/time";
import { revocationForms } from "./code";
import { RoleLink } from "./links";

type TokenView = Schemas["TokenView"];
const NewToken = lazy(() => import("./NewToken"));
const RotateToken = lazy(() => import("./RotateToken"));
const SOON_MS = 7 * 86_400_000;

/** Who has a token, how far it reaches, and whether it is used. */
export function Tokens(): ReactNode {
  const { q } = useSearch({ from: "/inside/access" });
  const navigate = useNavigate({ from: "/access" });
  const client = useQueryClient();
  const [opened, setOpened] = useState(false);
  const pages = usePages(["tokens", q], (token) =>
    dataOf(api.GET("/v1/tokens", { params: { query: { q, page_size: PAGE_SIZE, page_token: token } } })),
  );
  const reload = (): void => void client.invalidateQueries({ queryKey: ["pages", "tokens"] });
  const columns: Column<TokenView>[] = [
    { head: "Token", width: 150, cell: (token) => <Named token={token} /> },
    { head: "Account", width: 150, cell: ({ account }) => account },
    { head: "Role", width: 120, cell: ({ role }) => <RoleLink role={role} /> },
    { head: "Scope", width: 80, cell: ({ scope }) => scope },
    { head: "Last use", width: 100, cell: ({ last_used_at: used }) => (used ? `${age(used)} ago` : "never") },
    { head: "Ends", width: 170, cell: ({ expires_at }) => <Ends at={expires_at} /> },
    { head: "Made by", width: 110, cell: ({ created_by }) => created_by },
    {
      head: "Actions",
      width: 170,
      cell: ({ name }) => (
        <Group gap={6}>
          <Rotate name={name} done={reload} />
          <Revoke name={name} done={reload} />
        </Group>
      ),
    },
  ];
  return (
    <Stack gap="sm">
      <Group gap="sm" justify="space-between">
        <Filter
          label="Filter by name"
          value={q}
          change={(value) => void navigate({ search: (old) => ({ ...old, q: value }), replace: true })}
        />
        <Button size="xs" onClick={() => setOpened(true)}>
          New token
        </Button>
      </Group>
      <PagedRows
        label="Tokens"
        columns={columns}
        pages={pages}
        keyOf={({ name }) => name}
        empty={
          <Empty title={q ? `No token has ${q} in its name` : "There is no token"}>
            <Text size="sm">Without the privilege MANAGE_MEMBERS you see only your own tokens.</Text>
          </Empty>
        }
      />
      <Suspense fallback={null}>{opened && <NewToken close={() => setOpened(false)} made={reload} />}</Suspense>
    </Stack>
  );
}

function Named({ token }: { token: TokenView }): ReactNode {
  return (
    <>
      {token.name}
      <Text size="xs" c="dimmed">
        {[token.comment, token.values > 1 && "two values while it is rotated"].filter(Boolean).join(", ")}
      </Text>
    </>
  );
}

function Ends({ at }: { at: string | null | undefined }): ReactNode {
  if (!at) return "never";
  const left = Date.parse(at) - Date.now();
  const note = left < 0 ? "has ended" : left < SOON_MS ? "soon" : "";
  return (
    <>
      {localTime(at)}
      {note && (
        <Text size="xs" className="soon">
          {note}
        </Text>
      )}
    </>
  );
}

function Rotate({ name, done }: { name: string; done: () => void }): ReactNode {
  const [opened, setOpened] = useState(false);
  return (
    <>
      <Button size="compact-sm" variant="default" onClick={() => setOpened(true)} aria-label={`Rotate ${name}`}>
        Rotate
      </Button>
      <Suspense fallback={null}>
        {opened && <RotateToken name={name} close={() => setOpened(false)} done={done} />}
      </Suspense>
    </>
  );
}

function Revoke({ name, done }: { name: string; done: () => void }): ReactNode {
  return (
    <Confirm
      verb="Revoke"
      of={name}
      title={`Revoke token ${name}?`}
      consequence="From then on no server accepts it. This cannot be taken back. If it is the token of this tab, you are signed out."
      forms={revocationForms(name)}
      call={() => api.DELETE("/v1/tokens/{token}", { params: { path: { token: quoted(name) } } })}
      done={done}
    />
  );
}
