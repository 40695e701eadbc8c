import { Text } from "@mantine/core";
import type { ReactNode } from "react";
import { Section } from "../parts/Page";
import { Problem } from "../parts/Problem";
import { type Column, Rows, Waiting } from "../parts/Rows";
import { RoleLink } from "./links";
import { MOST, useRoles } from "./lists";
import { covers, type GrantView, type Kind, keyOf, targetOf } from "./privileges";

type Row = { role: string; grant: GrantView };

const COLUMNS: Column<Row>[] = [
  { head: "Role", cell: ({ role }) => <RoleLink role={role} /> },
  { head: "Privilege", width: 130, cell: ({ grant }) => grant.privilege.toUpperCase() },
  { head: "Granted on", cell: ({ grant }) => targetOf(grant) },
  { head: "May grant it", width: 110, cell: ({ grant }) => (grant.grant_option ? "yes" : "no") },
];

/** Which roles have been granted something on an object, by name or with all of its kind. */
export function ObjectGrants({ on, name }: { on: Kind; name: string }): ReactNode {
  return (
    <Section title="Grants">
      <Found on={on} name={name} />
    </Section>
  );
}

function Found({ on, name }: { on: Kind; name: string }): ReactNode {
  const found = useRoles();
  if (found.error) return <Problem error={found.error} retry={() => void found.refetch()} />;
  if (!found.data) return <Waiting />;
  const rows = found.data.items.flatMap((role) =>
    (role.grants ?? []).filter((grant) => covers(grant, on, name)).map((grant) => ({ role: role.name, grant })),
  );
  return (
    <>
      {rows.length === 0 ? (
        <Text size="sm">No role that you see has a grant on it. Its owner and built-in roles need none.</Text>
      ) : (
        <Rows label="Grants" columns={COLUMNS} items={rows} keyOf={({ role, grant }) => `${role} ${keyOf(grant)}`} />
      )}
      {found.data.next_page_token && <Text size="sm">Only the first {MOST} roles were read.</Text>}
    </>
  );
}
