import { Button, Grid, Stack, Text } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { lazy, type ReactNode, Suspense, useState } from "react";
import { revokeForms, rolePath } from "../access/code";
import { RoleLinks } from "../access/links";
import { BUILT_IN } from "../access/lists";
import { Members } from "../access/Members";
import { type GrantView, keyOf, queryOf, targetOf } from "../access/privileges";
import { api, dataOf } from "../api/client";
import { curl, shell } from "../api/code";
import { quoted } from "../api/names";
import type { Schemas } from "../api/problem";
import { ExportedCode } from "../parts/AsCode";
import { Confirm } from "../parts/Confirm";
import { Facts, Page, Section } from "../parts/Page";
import { Problem } from "../parts/Problem";
import { type Column, Rows, Waiting } from "../parts/Rows";
import { localTime } from "../parts/time";

type RoleView = Schemas["RoleView"];
const NewGrant = lazy(() => import("../access/NewGrant"));
// Who has made the roles that come with the server. They are part of no export.

/** One role: its grants, what it inherits, and who has it. */
export function Role(): ReactNode {
  const { role: path } = useParams({ from: "/inside/access/roles/$role" });
  const client = useQueryClient();
  const navigate = useNavigate();
  const found = useQuery({
    queryKey: ["access", "role", path],
    queryFn: () => dataOf(api.GET("/v1/roles/{role}", { params: { path: { role: path } } })),
  });
  const reload = (): void => {
    void client.invalidateQueries({ queryKey: ["access"] });
    void client.invalidateQueries({ queryKey: ["export"] });
    void client.invalidateQueries({ queryKey: ["pages", "roles"] });
  };
  const role = found.data;
  const leave = (): void => {
    void navigate({ to: "/access", search: { tab: "roles" } as never });
    void client.invalidateQueries({ queryKey: ["pages", "roles"] });
  };
  return (
    <Page
      title={role?.name ?? path}
      crumbs={[{ label: "Roles", to: "/access", search: { tab: "roles" } }]}
      actions={role && role.created_by !== BUILT_IN && <Delete role={role.name} done={leave} />}
    >
      {found.isPending && <Waiting />}
      {found.error && <Problem error={found.error} retry={() => void found.refetch()} />}
      {role && <Details role={role} reload={reload} />}
    </Page>
  );
}

type Props = { role: RoleView; reload: () => void };

function Details({ role, reload }: Props): ReactNode {
  return (
    <>
      <Facts
        facts={[
          ["Comment", role.comment],
          ["Inherits", role.inherits?.length ? <RoleLinks key="inherits" roles={role.inherits} /> : null],
          ["Owner", role.owner],
          ["Created", `${localTime(role.created_at)} by ${role.created_by}`],
          ["Changed", localTime(role.updated_at)],
        ]}
      />
      <Grid gap="lg">
        <Grid.Col span={{ base: 12, md: 7 }}>
          <Grants role={role} reload={reload} />
        </Grid.Col>
        <Grid.Col span={{ base: 12, md: 5 }}>
          <Members role={role.name} done={reload} />
        </Grid.Col>
      </Grid>
      {role.created_by !== BUILT_IN && (
        <Section title="As code">
          <ExportedCode name={`role:${quoted(role.name)}`} curl={curl("GET", rolePath(role.name))} />
        </Section>
      )}
    </>
  );
}

function Grants({ role, reload }: Props): ReactNode {
  const [opened, setOpened] = useState(false);
  const columns: Column<GrantView>[] = [
    { head: "Privilege", width: 120, cell: ({ privilege }) => privilege.toUpperCase() },
    { head: "On", cell: targetOf },
    { head: "May grant it", width: 110, cell: ({ grant_option }) => (grant_option ? "yes" : "no") },
    { head: "Action", width: 90, cell: (grant) => <Revoke role={role.name} grant={grant} done={reload} /> },
  ];
  const grants = role.grants ?? [];
  return (
    <Section title="Grants">
      <Stack gap="xs">
        {grants.length === 0 ? (
          <Text size="sm">
            {role.created_by === BUILT_IN
              ? "It has what its comment says. No grant was added."
              : "It has no grant of its own."}
          </Text>
        ) : (
          <Rows label="Grants" columns={columns} items={grants} keyOf={keyOf} />
        )}
        <Button size="xs" variant="default" className="start" onClick={() => setOpened(true)}>
          Grant a privilege
        </Button>
      </Stack>
      <Suspense fallback={null}>
        {opened && <NewGrant role={role.name} close={() => setOpened(false)} done={reload} />}
      </Suspense>
    </Section>
  );
}

function Revoke({ role, grant, done }: { role: string; grant: GrantView; done: () => void }): ReactNode {
  const { privilege, on } = grant;
  return (
    <Confirm
      verb="Revoke"
      of={`${privilege.toUpperCase()} on ${targetOf(grant)}`}
      title={`Revoke ${privilege.toUpperCase()} from role ${role}?`}
      consequence={`It counts from the next request on, on every server. A query of the role that needs ${privilege.toUpperCase()} on ${targetOf(grant)} fails when its job starts again.`}
      forms={revokeForms(role, grant)}
      call={() =>
        api.DELETE("/v1/roles/{role}/grants/{privilege}/{on}", {
          params: { path: { role: quoted(role), privilege, on }, query: queryOf(grant) },
        })
      }
      done={done}
    />
  );
}

function Delete({ role, done }: { role: string; done: () => void }): ReactNode {
  const name = quoted(role);
  return (
    <Confirm
      verb="Delete"
      of={`role ${role}`}
      title={`Delete role ${role}?`}
      consequence="The server refuses this while somebody has the role or it owns an object."
      forms={{
        sql: `DROP ROLE ${name};`,
        curl: curl("DELETE", rolePath(role)),
        leat: `leat role delete ${shell(name)}`,
      }}
      call={() => api.DELETE("/v1/roles/{role}", { params: { path: { role: name } } })}
      done={done}
    />
  );
}
