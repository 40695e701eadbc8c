import { Button, Menu, Stack, Text, TextInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { api, dataOf } from "../api/client";
import { curl, pathOf, shell } from "../api/code";
import { quoted } from "../api/names";
import type { Schemas } from "../api/problem";
import { FormDialog } from "../parts/FormDialog";

type QueryView = Schemas["QueryView"];
type Props = { query: QueryView; close: () => void };

/** What is done to a query now and then. */
export function More({ query }: { query: QueryView }): ReactNode {
  const [open, setOpen] = useState<"savepoint" | "rollback">();
  const close = (): void => setOpen(undefined);
  return (
    <>
      <Menu position="bottom-end" withinPortal>
        <Menu.Target>
          <Button size="xs" variant="default">
            More
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item onClick={() => setOpen("savepoint")}>Stop with a savepoint…</Menu.Item>
          <Menu.Item onClick={() => setOpen("rollback")}>Return to the version before the replacement…</Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {open === "savepoint" && <Savepoint query={query} close={close} />}
      {open === "rollback" && <Rollback query={query} close={close} />}
    </>
  );
}

function Savepoint({ query, close }: Props): ReactNode {
  const [name, setName] = useState("");
  const client = useQueryClient();
  const path = quoted(query.name);
  const take = useMutation({
    mutationFn: () =>
      dataOf(
        api.POST("/v1/queries/{query}:savepoint", { params: { path: { query: path } }, body: { name: name.trim() } }),
      ),
    onSuccess: () => {
      void client.invalidateQueries();
      close();
    },
  });
  return (
    <FormDialog
      title={`Stop query ${query.name} with a savepoint`}
      opened
      close={close}
      verb="Stop with a savepoint"
      submit={name.trim() === "" ? undefined : () => take.mutate()}
      pending={take.isPending}
      error={take.error}
      forms={{
        sql: `TERMINATE QUERY ${path} WITH SAVEPOINT ${quoted(name.trim())};`,
        curl: curl("POST", `${pathOf("queries", query.name)}:savepoint`, { name: name.trim() }),
        leat: `leat query stop ${shell(path)} --savepoint ${shell(quoted(name.trim()))}`,
      }}
    >
      <Stack gap="sm">
        <Text size="sm">
          The query stops in order, and its checkpoint is copied. A query can begin from the savepoint later.
        </Text>
        <TextInput
          label="Name of the savepoint"
          data-autofocus
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
        />
      </Stack>
    </FormDialog>
  );
}

function Rollback({ query, close }: Props): ReactNode {
  const client = useQueryClient();
  const path = quoted(query.name);
  const back = useMutation({
    mutationFn: () => dataOf(api.POST("/v1/queries/{query}:rollback", { params: { path: { query: path } } })),
    onSuccess: () => {
      void client.invalidateQueries();
      close();
    },
  });
  return (
    <FormDialog
      title={`Return to the version before of query ${query.name}`}
      opened
      close={close}
      verb="Return"
      submit={() => back.mutate()}
      pending={back.isPending}
      error={back.error}
      forms={{
        curl: curl("POST", `${pathOf("queries", query.name)}:rollback`),
        leat: `leat query rollback ${shell(path)}`,
      }}
    >
      <Text size="sm">
        The version that the last replacement took over from starts again, and takes over when it has caught up.
      </Text>
    </FormDialog>
  );
}
