import { MultiSelect, Select, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { FormDialog } from "../parts/FormDialog";
import {
  type Account,
  type AccountKind,
  changeAccount,
  changeForms,
  createAccount,
  creationForms,
  type Given,
  words,
} from "./accounts";
import { useRoles } from "./lists";

type Props = { kind: AccountKind; close: () => void; done: () => void };

/** Creates a user or a service account. */
export function NewAccount({ kind, close, done }: Props): ReactNode {
  const roles = useRoles();
  const [given, setGiven] = useState<Given>({ name: "", roles: [], defaultRole: "", comment: "" });
  const change = (more: Partial<Given>): void => setGiven((old) => ({ ...old, ...more }));
  const make = useMutation({
    mutationFn: () => createAccount(kind, given),
    onSuccess: () => {
      close();
      done();
    },
  });
  return (
    <FormDialog
      title={`New ${words(kind)}`}
      opened
      close={close}
      verb="Create"
      submit={given.name === "" ? undefined : () => make.mutate()}
      pending={make.isPending}
      error={make.error}
      forms={creationForms(kind, given)}
    >
      <TextInput
        label="Name"
        description={kind === "user" ? "Such as an address of mail." : "Such as the name of a pipeline."}
        data-autofocus
        value={given.name}
        onChange={(event) => change({ name: event.currentTarget.value.trim() })}
      />
      <MultiSelect
        label="Roles"
        description="Its tokens act in one of these."
        data={roles.data?.items.map(({ name }) => name) ?? []}
        error={roles.error?.message}
        searchable
        value={given.roles}
        onChange={(chosen) =>
          change({ roles: chosen, ...(chosen.includes(given.defaultRole) ? {} : { defaultRole: "" }) })
        }
      />
      <DefaultRole roles={given.roles} value={given.defaultRole} change={(defaultRole) => change({ defaultRole })} />
      <TextInput
        label="Comment"
        value={given.comment}
        onChange={(event) => change({ comment: event.currentTarget.value })}
      />
    </FormDialog>
  );
}

/** Changes the default role and the comment of an account. Its roles are members' of the roles' pages. */
export function EditAccount({ kind, account: newest, close, done }: Props & { account: Account }): ReactNode {
  // The list is read again meanwhile; with the newest generation it would overwrite what others changed.
  const [account] = useState(newest);
  const [defaultRole, setDefaultRole] = useState(account.default_role ?? "");
  const [comment, setComment] = useState(account.comment ?? "");
  const more = { default_role: defaultRole || null, comment: comment || null };
  const save = useMutation({
    mutationFn: () => changeAccount(kind, account, more),
    onSuccess: () => {
      close();
      done();
    },
  });
  return (
    <FormDialog
      title={`Change ${words(kind)} ${account.name}`}
      opened
      close={close}
      verb="Save"
      submit={() => save.mutate()}
      pending={save.isPending}
      error={save.error}
      forms={changeForms(kind, account, more)}
    >
      <DefaultRole roles={account.roles ?? []} value={defaultRole} change={setDefaultRole} />
      <TextInput label="Comment" value={comment} onChange={(event) => setComment(event.currentTarget.value)} />
    </FormDialog>
  );
}

type RoleProps = { roles: readonly string[]; value: string; change: (role: string) => void };

function DefaultRole({ roles, value, change }: RoleProps): ReactNode {
  return (
    <Select
      label="Default role"
      description="Of tokens that name none. Left out: the only role."
      data={[...roles]}
      value={value || null}
      clearable
      onChange={(role) => change(role ?? "")}
    />
  );
}
