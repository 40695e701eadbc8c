import { PasswordInput, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import type { Schemas } from "../api/problem";
import { runSql } from "../api/statements";
import { FormDialog } from "../parts/FormDialog";
import { creation, type NewSecret as Given, rotation, rotationForms, secretForms } from "./code";

type Props = { close: () => void; done: (name: string) => void };

/** Creates a secret. Its value is sent and kept nowhere here. */
export default function NewSecret({ close, done }: Props): ReactNode {
  const [given, setGiven] = useState<Given>({ name: "", value: "", comment: "" });
  const change = (more: Partial<Given>): void => setGiven((old) => ({ ...old, ...more }));
  const make = useMutation({
    mutationFn: () => runSql(creation(given, given.value)),
    onSuccess: () => {
      close();
      done(given.name);
    },
  });
  return (
    <FormDialog
      title="New secret"
      opened
      close={close}
      verb="Create"
      submit={given.name === "" || given.value === "" ? undefined : () => make.mutate()}
      pending={make.isPending}
      error={make.error}
      forms={secretForms(given)}
    >
      <TextInput
        label="Name"
        description="Taken as it is written, upper case too."
        data-autofocus
        value={given.name}
        onChange={(event) => change({ name: event.currentTarget.value.trim() })}
      />
      <Value value={given.value} change={(value) => change({ value })} />
      <TextInput
        label="Comment"
        description="It is shown to everyone who sees the secret."
        value={given.comment}
        onChange={(event) => change({ comment: event.currentTarget.value })}
      />
    </FormDialog>
  );
}

/** Gives a secret another value. */
export function NewValue({ secret, close, done }: { secret: Schemas["SecretView"] } & Props): ReactNode {
  const [value, setValue] = useState("");
  const change = useMutation({
    mutationFn: () => runSql(rotation(secret.name, value)),
    onSuccess: () => {
      close();
      done(secret.name);
    },
  });
  return (
    <FormDialog
      title={`New value of secret ${secret.name}`}
      opened
      close={close}
      verb="Store the value"
      submit={value === "" ? undefined : () => change.mutate()}
      pending={change.isPending}
      error={change.error}
      forms={rotationForms(secret)}
    >
      <Value value={value} change={setValue} focus />
    </FormDialog>
  );
}

type ValueProps = { value: string; change: (value: string) => void; focus?: boolean };

function Value({ value, change, focus }: ValueProps): ReactNode {
  return (
    <PasswordInput
      label="Value"
      description="It is stored encrypted and shown nowhere again."
      // The browser's own store of passwords must not offer to keep it.
      autoComplete="new-password"
      data-autofocus={focus || undefined}
      visibilityToggleButtonProps={{ "aria-label": "Show the value" }}
      value={value}
      onChange={(event) => change(event.currentTarget.value)}
    />
  );
}
