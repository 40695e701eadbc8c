import { Anchor, Group } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { quoted } from "../api/names";

/** The way to a role's page. */
export function RoleLink({ role }: { role: string }): ReactNode {
  return (
    <Anchor
      component={Link}
      to="/access/roles/$role"
      params={{ role: quoted(role) } as never}
      size="sm"
      className="break"
    >
      {role}
    </Anchor>
  );
}

/** The ways to several. */
export function RoleLinks({ roles }: { roles: readonly string[] | null | undefined }): ReactNode {
  if (!roles?.length) return null;
  return (
    <Group gap="sm">
      {roles.map((role) => (
        <RoleLink key={role} role={role} />
      ))}
    </Group>
  );
}
