import { Button, Group, NativeSelect, Stack, Text, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { api, dataOf } from "../api/client";
import { quoted } from "../api/names";
import { Confirm } from "../parts/Confirm";
import { FormDialog } from "../parts/FormDialog";
import { Section } from "../parts/Page";
import { Problem } from "../parts/Problem";
import { type Column, Rows, Waiting } from "../parts/Rows";
import { type Member, type MemberKind, memberForms, removalForms } from "./code";
import { RoleLink } from "./links";
import { MOST, useRoles, useServiceAccounts, useUsers } from "./lists";

type Props = { role: string; done: () => void };
const words = (kind: MemberKind): string => kind.replace("_", " ");

/** Users, service accounts and roles that have a role. */
export function Members({ role, done }: Props): ReactNode {
  const [opened, setOpened] = useState(false);
  return (
    <Section title="Members">
      <Stack gap="xs">
        <Found role={role} done={done} />
        <Button size="xs" variant="default" className="start" onClick={() => setOpened(true)}>
          Give the role
        </Button>
      </Stack>
      {opened && <NewMember role={role} close={() => setOpened(false)} done={done} />}
    </Section>
  );
}

function Found({ role, done }: Props): ReactNode {
  const lists = [useRoles(), useUsers(), useServiceAccounts()] as const;
  const [roles, users, services] = lists;
  const failed = lists.find(({ error }) => error);
  if (failed) return <Problem error={failed.error} retry={() => void failed.refetch()} />;
  if (!roles.data || !users.data || !services.data) return <Waiting />;
  const has = ({ roles: own }: { roles?: string[] | null }): boolean => own?.includes(role) ?? false;
  const members: Member[] = [
    ...roles.data.items.filter((one) => one.inherits?.includes(role)).map(({ name }) => member("role", name)),
    ...users.data.items.filter(has).map(({ name }) => member("user", name)),
    ...services.data.items.filter(has).map(({ name }) => member("service_account", name)),
  ];
  const columns: Column<Member>[] = [
    { head: "Member", cell: ({ kind, name }) => (kind === "role" ? <RoleLink role={name} /> : name) },
    { head: "Kind", width: 130, cell: ({ kind }) => words(kind) },
    { head: "Action", width: 100, cell: (one) => <Take role={role} member={one} done={done} /> },
  ];
  const more = lists.some(({ data }) => data?.next_page_token);
  return (
    <>
      {members.length === 0 ? (
        <Text size="sm">Nobody whom you see has it. Without MANAGE_MEMBERS you see only your own account.</Text>
      ) : (
        <Rows label="Members" columns={columns} items={members} keyOf={({ kind, name }) => `${kind} ${name}`} />
      )}
      {more && <Text size="sm">Only the first {MOST} of each kind were read.</Text>}
    </>
  );
}

const member = (kind: MemberKind, name: string): Member => ({ kind, name });

function paths(
  role: string,
  { kind, name }: Member,
): { path: { role: string; member_kind: MemberKind; member: string } } {
  return { path: { role: quoted(role), member_kind: kind, member: quoted(name) } };
}

function Take({ role, member: one, done }: Props & { member: Member }): ReactNode {
  return (
    <Confirm
      verb="Remove"
      of={`${one.name} from role ${role}`}
      title={`Take role ${role} from ${words(one.kind)} ${one.name}?`}
      consequence={
        one.kind === "role"
          ? `Role ${one.name} loses the grants that it has through ${role}, from the next request on.`
          : `Tokens of ${one.name} that act in ${role} are refused from the next request on.`
      }
      forms={removalForms(role, one)}
      call={() => api.DELETE("/v1/roles/{role}/members/{member_kind}/{member}", { params: paths(role, one) })}
      done={done}
    />
  );
}

function NewMember({ role, close, done }: Props & { close: () => void }): ReactNode {
  const [given, setGiven] = useState<Member>({ kind: "user", name: "" });
  const make = useMutation({
    mutationFn: (one: Member) =>
      dataOf(api.PUT("/v1/roles/{role}/members/{member_kind}/{member}", { params: paths(role, one), body: {} })),
    onSuccess: () => {
      close();
      done();
    },
  });
  return (
    <FormDialog
      title={`Give role ${role}`}
      opened
      close={close}
      verb="Give"
      submit={given.name === "" ? undefined : () => make.mutate(given)}
      pending={make.isPending}
      error={make.error}
      forms={memberForms(role, given)}
    >
      <Group grow align="flex-end">
        <NativeSelect
          label="To a"
          data={[
            { value: "user", label: "user" },
            { value: "service_account", label: "service account" },
            { value: "role", label: "role" },
          ]}
          value={given.kind}
          onChange={(event) => setGiven(member(event.currentTarget.value as MemberKind, given.name))}
        />
        <TextInput
          label="Name"
          data-autofocus
          value={given.name}
          onChange={(event) => setGiven(member(given.kind, event.currentTarget.value.trim()))}
        />
      </Group>
    </FormDialog>
  );
}
