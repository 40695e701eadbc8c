import { Button, Group, Text } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { lazy, type ReactNode, Suspense, useState } from "react";
import { api, dataOf } from "../api/client";
import { quoted } from "../api/names";
import { PAGE_SIZE, usePages } from "../api/pages";
import type { Schemas } from "../api/problem";
import { AsCode } from "../parts/AsCode";
import { Filter } from "../parts/Filter";
import { NameLink, NameLinks } from "../parts/Names";
import { Empty, Page } from "../parts/Page";
import { type Column, PagedRows } from "../parts/Rows";
import { secretForms, usesOf } from "../secrets/code";
import { MOST, useUsers } from "../secrets/lists";

const NewSecret = lazy(() => import("../secrets/NewSecret"));
const EXAMPLE = { name: "kafka_password", value: "", comment: "" };

/** Named values that stores and schema registries use and nobody reads. */
export function Secrets(): ReactNode {
  const { q } = useSearch({ from: "/inside/secrets" });
  const navigate = useNavigate({ from: "/secrets" });
  const client = useQueryClient();
  const [opened, setOpened] = useState(false);
  const users = useUsers();
  const pages = usePages(["secrets", q], (token) =>
    dataOf(api.GET("/v1/secrets", { params: { query: { q, page_size: PAGE_SIZE, page_token: token } } })),
  );
  const columns: Column<Schemas["SecretView"]>[] = [
    { head: "Secret", width: 180, cell: ({ name }) => <NameLink kind="secret" name={name} /> },
    { head: "Type", width: 130, cell: ({ type }) => type.replaceAll("_", " ") },
    {
      head: "Value",
      width: 110,
      cell: ({ reference, version }) => (reference ? "by reference" : `number ${version}`),
    },
    {
      head: "Used by",
      cell: ({ name }) => {
        const { stores, registries } = usesOf(name, users.data?.stores ?? [], users.data?.registries ?? []);
        const more = registries.map((one) => `schema registry ${one}`).join(", ");
        if (stores.length === 0 && more === "") return users.data && "nothing that you see";
        return (
          <>
            <NameLinks kind="store" names={stores} most={3} />
            {more}
          </>
        );
      },
    },
    { head: "Owner", width: 120, cell: ({ owner }) => owner },
    { head: "Comment", cell: ({ comment }) => comment },
  ];
  const show = (name: string): void => {
    void client.invalidateQueries({ queryKey: ["pages", "secrets"] });
    void navigate({ to: "/secrets/$secret", params: { secret: quoted(name) } as never });
  };
  return (
    <Page
      title="Secrets"
      actions={
        <Button size="xs" onClick={() => setOpened(true)}>
          New secret
        </Button>
      }
    >
      <Group gap="sm">
        <Filter
          label="Filter by name"
          value={q}
          change={(value) => void navigate({ search: (old) => ({ ...old, q: value }), replace: true })}
        />
      </Group>
      <PagedRows
        label="Secrets"
        columns={columns}
        pages={pages}
        keyOf={({ id }) => id}
        empty={
          q ? (
            <Empty title={`No secret has ${q} in its name`} />
          ) : (
            <Empty title="There is no secret that you see">
              <Text size="sm" mb="xs">
                A store or a schema registry uses a secret instead of a password, by its name. Its value is never
                shown. Create one here, or so:
              </Text>
              {!opened && <AsCode forms={secretForms(EXAMPLE)} />}
            </Empty>
          )
        }
      />
      {users.data?.more && <Text size="sm">Uses were looked for in the first {MOST} objects of each kind.</Text>}
      <Suspense fallback={null}>{opened && <NewSecret close={() => setOpened(false)} done={show} />}</Suspense>
    </Page>
  );
}
