import { Button, Group, Modal, NativeSelect, NumberInput, Stack, Text, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { api, dataOf } from "../api/client";
import { quoted } from "../api/names";
import type { Schemas } from "../api/problem";
import { Copy } from "../parts/Copy";
import { FormDialog } from "../parts/FormDialog";
import { Facts, Source } from "../parts/Page";
import { localTime } from "../parts/time";
import { type NewToken as Given, tokenBody, tokenForms } from "./code";

const EMPTY: Given = { name: "", account: "", role: "", scope: "write", days: 90, comment: "" };

/** Makes a token and shows its value, this once. */
export default function NewToken({ close, made }: { close: () => void; made: () => void }): ReactNode {
  const [given, setGiven] = useState(EMPTY);
  const change = (more: Partial<Given>): void => setGiven((old) => ({ ...old, ...more }));
  const make = useMutation({
    mutationFn: (token: Given) =>
      dataOf(
        api.POST("/v1/tokens/{token}", {
          params: { path: { token: quoted(token.name) } },
          body: tokenBody(token) as Schemas["TokenBody"],
        }),
      ),
    // The value is kept nowhere but on the screen.
    gcTime: 0,
    onSuccess: made,
  });
  if (make.data) return <Value token={make.data} close={close} />;
  return (
    <FormDialog
      title="New token"
      opened
      close={close}
      verb="Make the token"
      submit={given.name === "" ? undefined : () => make.mutate(given)}
      pending={make.isPending}
      error={make.error}
      forms={tokenForms(given)}
    >
      <TextInput
        label="Name"
        data-autofocus
        value={given.name}
        onChange={(event) => change({ name: event.currentTarget.value.trim() })}
      />
      <Group grow align="flex-start">
        <TextInput
          label="Account"
          description="Left out: your own."
          value={given.account}
          onChange={(event) => change({ account: event.currentTarget.value.trim() })}
        />
        <TextInput
          label="Role"
          description="Left out: the account's default role."
          value={given.role}
          onChange={(event) => change({ role: event.currentTarget.value.trim() })}
        />
      </Group>
      <Group grow align="flex-start">
        <NativeSelect
          label="Scope"
          description="admin: for access itself."
          data={["read", "write", "admin"]}
          value={given.scope}
          onChange={(event) => change({ scope: event.currentTarget.value as Given["scope"] })}
        />
        <NumberInput
          label="Days"
          description="Until it ends."
          min={1}
          max={3650}
          allowDecimal={false}
          value={given.days}
          onChange={(days) => change({ days: Number(days) || 1 })}
        />
      </Group>
      <TextInput
        label="Comment"
        value={given.comment}
        onChange={(event) => change({ comment: event.currentTarget.value })}
      />
    </FormDialog>
  );
}

/** The value of a token that was just made. */
export function Value({ token, close }: { token: Schemas["NewTokenView"]; close: () => void }): ReactNode {
  return (
    <Modal
      opened
      onClose={close}
      // A click beside it would lose the value.
      closeOnClickOutside={false}
      title={`Token ${token.name}`}
    >
      <Stack>
        <Text size="sm" fw={600} role="status">
          Copy the value now. The server does not store it, and it is not shown again.
        </Text>
        <Source text={token.value} label="Value" />
        <Facts
          facts={[
            ["Account", token.account],
            ["Role", token.role],
            ["Scope", token.scope],
            ["Ends", token.expires_at ? localTime(token.expires_at) : "never"],
          ]}
        />
        <Group justify="flex-end">
          <Copy text={token.value} label="Copy the value" />
          <Button size="compact-sm" onClick={close}>
            Done
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
