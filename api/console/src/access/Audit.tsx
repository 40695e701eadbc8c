import { Group, Stack, Text } from "@mantine/core";
import { useNavigate, useSearch } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { api, dataOf } from "../api/client";
import { PAGE_SIZE, usePages } from "../api/pages";
import type { Schemas } from "../api/problem";
import { Choice, Filter } from "../parts/Filter";
import { Empty } from "../parts/Page";
import { type Column, PagedRows } from "../parts/Rows";
import { State } from "../parts/State";
import { localTime } from "../parts/time";

type AuditEvent = Schemas["AuditEventView"];
const POLL_MS = 15_000;

const COLUMNS: Column<AuditEvent>[] = [
  { head: "Time", width: 178, cell: ({ at }) => localTime(at) },
  {
    head: "Account",
    width: 150,
    cell: ({ principal, role }) => (
      <>
        {principal || "nobody"}
        <Text size="xs" c="dimmed">
          {role && `as ${role}`}
        </Text>
      </>
    ),
  },
  { head: "Operation", width: 100, cell: ({ operation }) => operation },
  {
    head: "Object",
    width: 200,
    cell: ({ kind, name }) => (
      <>
        {name}
        <Text size="xs" c="dimmed">
          {kind.replaceAll("_", " ")}
        </Text>
      </>
    ),
  },
  {
    head: "Outcome",
    width: 140,
    cell: ({ outcome, code, detail, count }) => (
      <>
        <State state={outcome} />
        <Text size="xs" c="dimmed">
          {code} {count && `${count} times`}
        </Text>
        <Text size="xs" c="dimmed">
          {detail}
        </Text>
      </>
    ),
  },
  {
    head: "Request",
    width: 150,
    cell: ({ request }) => <span className="mono">{request}</span>,
  },
  {
    head: "From",
    width: 130,
    cell: ({ address, token }) => (
      <>
        {address}
        <Text size="xs" c="dimmed">
          {token && `token ${token}`}
        </Text>
      </>
    ),
  },
];

/** Who changed what, and what was refused; the newest first. */
export function Audit(): ReactNode {
  const { account, outcome, q } = useSearch({ from: "/inside/access" });
  const navigate = useNavigate({ from: "/access" });
  const set = (more: Record<string, string | undefined>): void =>
    void navigate({ search: (old) => ({ ...old, ...more }), replace: true });
  const pages = usePages(
    ["audit", account],
    (token) =>
      dataOf(
        api.GET("/v1/audit-events", { params: { query: { account, page_size: PAGE_SIZE, page_token: token } } }),
      ),
    POLL_MS,
  );
  const wanted = q?.toLowerCase() ?? "";
  const shows = (event: AuditEvent): boolean =>
    (outcome === undefined || event.outcome === outcome) &&
    `${event.operation} ${event.kind} ${event.name} ${event.role} ${event.code ?? ""}`.toLowerCase().includes(wanted);
  return (
    <Stack gap="sm">
      <Group gap="sm">
        <Filter label="Account, exact" value={account} change={(value) => set({ account: value })} />
        <Filter label="Filter the loaded events" value={q} change={(value) => set({ q: value })} />
        <Choice
          label="Outcome"
          values={["allowed", "denied"]}
          value={outcome}
          change={(value) => set({ outcome: value })}
        />
      </Group>
      <PagedRows
        label="Audit log"
        columns={COLUMNS}
        pages={pages}
        shows={shows}
        keyOf={({ number }) => String(number)}
        empty={<Empty title={account ? `There is no event of account ${account}` : "Nothing has happened yet"} />}
      />
    </Stack>
  );
}
