import { MultiSelect, TextInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { api, dataOf } from "../api/client";
import { quoted } from "../api/names";
import { FormDialog } from "../parts/FormDialog";
import { type NewRole as Given, roleForms } from "./code";
import { useRoles } from "./lists";

/** Creates a role and shows it. */
export default function NewRole({ close }: { close: () => void }): ReactNode {
  const client = useQueryClient();
  const navigate = useNavigate();
  const roles = useRoles();
  const [given, setGiven] = useState<Given>({ name: "", comment: "", inherits: [] });
  const change = (more: Partial<Given>): void => setGiven((old) => ({ ...old, ...more }));
  const make = useMutation({
    mutationFn: ({ name, comment, inherits }: Given) =>
      dataOf(
        api.PUT("/v1/roles/{role}", {
          // A role of this name is not replaced.
          params: { path: { role: quoted(name) }, header: { "If-None-Match": "*" } },
          body: { comment: comment || null, inherits },
        }),
      ),
    onSuccess: ({ name }) => {
      void client.invalidateQueries({ queryKey: ["access"] });
      void client.invalidateQueries({ queryKey: ["pages", "roles"] });
      close();
      void navigate({ to: "/access/roles/$role", params: { role: quoted(name) } as never });
    },
  });
  return (
    <FormDialog
      title="New role"
      opened
      close={close}
      verb="Create"
      submit={given.name === "" ? undefined : () => make.mutate(given)}
      pending={make.isPending}
      error={make.error}
      forms={roleForms(given)}
    >
      <TextInput
        label="Name"
        description="Taken as it is written, upper case too."
        data-autofocus
        value={given.name}
        onChange={(event) => change({ name: event.currentTarget.value.trim() })}
      />
      <TextInput
        label="Comment"
        value={given.comment}
        onChange={(event) => change({ comment: event.currentTarget.value })}
      />
      <MultiSelect
        label="Inherits"
        description="It has the grants of these roles too."
        data={roles.data?.items.map(({ name }) => name) ?? []}
        error={roles.error?.message}
        searchable
        value={given.inherits}
        onChange={(inherits) => change({ inherits })}
      />
    </FormDialog>
  );
}
