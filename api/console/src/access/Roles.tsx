import { Button, Group, SegmentedControl, Stack, Text } from "@mantine/core";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { lazy, type ReactNode, Suspense, useState } from "react";
import { api, dataOf } from "../api/client";
import { PAGE_SIZE, usePages } from "../api/pages";
import type { Schemas } from "../api/problem";
import { Filter } from "../parts/Filter";
import { Empty } from "../parts/Page";
import { Problem } from "../parts/Problem";
import { type Column, PagedRows, Waiting } from "../parts/Rows";
import { RoleLink, RoleLinks } from "./links";
import { BUILT_IN, MOST, useRoles } from "./lists";

type RoleView = Schemas["RoleView"];
const NewRole = lazy(() => import("./NewRole"));

const COLUMNS: Column<RoleView>[] = [
  { head: "Role", cell: ({ name }) => <RoleLink role={name} />, width: 180 },
  { head: "Inherits", cell: ({ inherits }) => <RoleLinks roles={inherits} /> },
  {
    head: "Grants",
    width: 80,
    // The rights of built-in roles are no grants, but for those of public: the comment says what they are.
    cell: ({ name, created_by, grants }) =>
      created_by === BUILT_IN && name !== "public" ? "built in" : (grants?.length ?? 0),
  },
  { head: "Comment", cell: ({ comment }) => comment },
];

/** Roles as a list, or by what they inherit. */
export function Roles(): ReactNode {
  const { q, view } = useSearch({ from: "/inside/access" });
  const navigate = useNavigate({ from: "/access" });
  const [opened, setOpened] = useState(false);
  return (
    <Stack gap="sm">
      <Group gap="sm" justify="space-between">
        <Group gap="sm">
          <SegmentedControl
            size="xs"
            aria-label="View"
            data={[
              { value: "list", label: "List" },
              { value: "hierarchy", label: "Hierarchy" },
            ]}
            value={view === "hierarchy" ? view : "list"}
            onChange={(value) =>
              void navigate({
                search: (old) => ({ ...old, view: value === "list" ? undefined : value }),
                replace: true,
              })
            }
          />
          {view !== "hierarchy" && (
            <Filter
              label="Filter by name"
              value={q}
              change={(value) => void navigate({ search: (old) => ({ ...old, q: value }), replace: true })}
            />
          )}
        </Group>
        <Button size="xs" onClick={() => setOpened(true)}>
          New role
        </Button>
      </Group>
      {view === "hierarchy" ? <Hierarchy /> : <RoleList q={q} />}
      <Suspense fallback={null}>{opened && <NewRole close={() => setOpened(false)} />}</Suspense>
    </Stack>
  );
}

function RoleList({ q }: { q: string | undefined }): ReactNode {
  const pages = usePages(["roles", q], (token) =>
    dataOf(api.GET("/v1/roles", { params: { query: { q, page_size: PAGE_SIZE, page_token: token } } })),
  );
  return (
    <PagedRows
      label="Roles"
      columns={COLUMNS}
      pages={pages}
      keyOf={({ id }) => id}
      empty={<Empty title={q ? `No role has ${q} in its name` : "You see no role"} />}
    />
  );
}

/** A role above those that it inherits. */
function Hierarchy(): ReactNode {
  const found = useRoles();
  if (found.error) return <Problem error={found.error} retry={() => void found.refetch()} />;
  if (!found.data) return <Waiting />;
  const roles = new Map(found.data.items.map((role) => [role.name, role]));
  const inherited = new Set(found.data.items.flatMap(({ inherits }) => inherits ?? []));
  const tops = found.data.items.filter(({ name, inherits }) => !inherited.has(name) && inherits?.length);
  const alone = found.data.items.filter(({ name, inherits }) => !inherited.has(name) && !inherits?.length);
  return (
    <Stack gap="sm">
      {tops.length === 0 && <Text size="sm">No role inherits another one.</Text>}
      {tops.length > 0 && (
        <ul className="tree">
          {tops.map(({ name }) => (
            <Branch key={name} name={name} roles={roles} above={[]} />
          ))}
        </ul>
      )}
      <Text size="sm" c="dimmed">
        Each role has the grants of those below it. These inherit none and are inherited by none; a built-in role says
        in its comment what it includes.
      </Text>
      <RoleLinks roles={alone.map(({ name }) => name)} />
      {found.data.next_page_token && <Text size="sm">The first {MOST} roles are shown.</Text>}
    </Stack>
  );
}

type BranchProps = { name: string; roles: ReadonlyMap<string, RoleView>; above: readonly string[] };

function Branch({ name, roles, above }: BranchProps): ReactNode {
  const below = (roles.get(name)?.inherits ?? []).filter((one) => !above.includes(one));
  return (
    <li>
      <RoleLink role={name} />
      {below.length > 0 && (
        <ul>
          {below.map((one) => (
            <Branch key={one} name={one} roles={roles} above={[...above, name]} />
          ))}
        </ul>
      )}
    </li>
  );
}
