import { Button, Group, Stack, Text } from "@mantine/core";
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
        <span className="what" title={name}>
          {name}
        </span>
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
    head: "Address",
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

// Of requests and sign-ins only the refused ones are events.
const KINDS = [
  "account",
  "application",
  "database",
  "descriptor_source",
  "function",
  "function_source",
  "key",
  "query",
  "relation",
  "request",
  "role",
  "savepoint",
  "schema",
  "schema_registry",
  "secret",
  "session",
  "sign_in",
  "store",
  "token",
];
const OPERATIONS = ["create", "update", "delete", "rotate"];

/** A local time of the address as the API takes it; undefined while it is not complete. */
function exact(local: string | undefined): string | undefined {
  const moment = new Date(local ?? "");
  return Number.isNaN(moment.getTime()) ? undefined : moment.toISOString();
}

/** Who changed what, and what was refused; the newest first. The server filters, so that each page is full. */
export function Audit(): ReactNode {
  const { account, operation, kind, outcome, q, since, until } = useSearch({ from: "/inside/access" });
  const navigate = useNavigate({ from: "/access" });
  const set = (more: Record<string, string | undefined>): void =>
    void navigate({ search: (old) => ({ ...old, ...more }), replace: true });
  const wanted = {
    account,
    operation,
    kind,
    outcome: isOutcome(outcome),
    q,
    since: exact(since),
    until: exact(until),
  };
  const narrowed = Object.values(wanted).some((value) => value !== undefined);
  const pages = usePages(
    ["audit", wanted],
    (token) =>
      dataOf(
        api.GET("/v1/audit-events", {
          params: { query: { ...wanted, page_size: PAGE_SIZE, page_token: token } },
        }),
      ),
    POLL_MS,
  );
  return (
    <Stack gap="sm">
      <Group gap="sm" align="flex-end">
        <Filter above w={130} label="Account" value={account} change={(value) => set({ account: value })} />
        <Choice
          above
          w={110}
          label="Operation"
          values={OPERATIONS}
          value={operation}
          change={(value) => set({ operation: value })}
        />
        <Choice
          above
          w={140}
          label="Kind of object"
          values={KINDS}
          words={(value) => value.replaceAll("_", " ")}
          value={kind}
          change={(value) => set({ kind: value })}
        />
        <Filter above w={130} label="Part of its name" value={q} change={(value) => set({ q: value })} />
        <Choice
          above
          w={110}
          label="Outcome"
          values={OUTCOMES}
          value={outcome}
          change={(value) => set({ outcome: value })}
        />
        <Filter
          above
          w={194}
          type="datetime-local"
          label="From"
          value={since}
          change={(value) => set({ since: value })}
        />
        <Filter
          above
          w={194}
          type="datetime-local"
          label="Until"
          value={until}
          change={(value) => set({ until: value })}
        />
      </Group>
      <PagedRows
        label="Audit log"
        columns={COLUMNS}
        pages={pages}
        keyOf={({ number }) => String(number)}
        empty={
          narrowed ? (
            <Empty title="No event fits these filters">
              <Button size="xs" variant="default" onClick={() => void navigate({ search: { tab: "audit" } })}>
                Remove the filters
              </Button>
            </Empty>
          ) : (
            <Empty title="Nothing has happened yet" />
          )
        }
      />
    </Stack>
  );
}

const OUTCOMES = ["allowed", "denied"] as const;
const isOutcome = (text: string | undefined): (typeof OUTCOMES)[number] | undefined =>
  OUTCOMES.find((one) => one === text);
