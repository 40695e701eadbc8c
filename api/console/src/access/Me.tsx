import { Stack } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { api, dataOf } from "../api/client";
import { curl } from "../api/code";
import { AsCode } from "../parts/AsCode";
import { Facts, Section } from "../parts/Page";
import { Problem } from "../parts/Problem";
import { Waiting } from "../parts/Rows";
import { RoleLinks } from "./links";

const SCOPES = {
  read: "read: it changes nothing",
  write: "write: all but access itself",
  admin: "admin: access too",
};

/** The caller as the server sees it. */
export function Me(): ReactNode {
  const me = useQuery({ queryKey: ["me"], queryFn: () => dataOf(api.GET("/v1/me")) });
  if (me.error) return <Problem error={me.error} retry={() => void me.refetch()} />;
  if (!me.data) return <Waiting />;
  const { name, role, scope, roles, effective_roles, organization_privileges } = me.data;
  const privileges = organization_privileges.map((one) => one.toUpperCase()).join(", ");
  return (
    <Stack gap="md">
      <Facts
        facts={[
          ["Account", name],
          ["Role in use", <RoleLinks key="role" roles={[role]} />],
          ["Scope of the token", SCOPES[scope]],
          ["Roles of yours", <RoleLinks key="roles" roles={roles} />],
          ["Acts also as", <RoleLinks key="effective" roles={effective_roles.filter((one) => one !== role)} />],
          ["On the organization", privileges || "no privilege"],
        ]}
      />
      <Section title="As code">
        <AsCode forms={{ curl: curl("GET", "/v1/me"), leat: "leat whoami" }} />
      </Section>
    </Stack>
  );
}
