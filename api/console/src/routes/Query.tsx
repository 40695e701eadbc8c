import { Alert, Anchor, Button, Group, Menu, Stack, Tabs, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconAlertTriangle } from "@tabler/icons-react";
import { type UseMutationResult, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { lazy, type ReactNode, Suspense } from "react";
import { api, dataOf } from "../api/client";
import { curl, pathOf } from "../api/code";
import { isInTrouble } from "../api/figures";
import { quoted } from "../api/names";
import type { Schemas } from "../api/problem";
import { usePoll } from "../events/useFeed";
import { ExportedCode } from "../parts/AsCode";
import { Cure, recordOf } from "../parts/Cure";
import { LineageButton } from "../parts/LineageButton";
import { Facts, Page, Section, Source } from "../parts/Page";
import { Plan } from "../parts/Plan";
import { Problem } from "../parts/Problem";
import { Waiting } from "../parts/Rows";
import { State } from "../parts/State";
import { age, localTime } from "../parts/time";
import { Logs } from "./QueryLogs";
import { More } from "./QueryMore";
import { Events, Metrics, Versions } from "./QueryTabs";

const EditQuery = lazy(() => import("./EditQuery"));
type QueryView = Schemas["QueryView"];
const POLL_MS = 3_000;
const TABS = ["Statement", "Plan", "Events", "Metrics", "Logs", "Versions", "Code"] as const;

/** One query: its state and the cause first, then what it does and how it fares. */
export function Query(): ReactNode {
  const { query: name } = useParams({ from: "/inside/queries/$query" });
  const { tab = "Statement" } = useSearch({ from: "/inside/queries/$query" });
  const navigate = useNavigate({ from: "/queries/$query" });
  const found = useQuery({
    queryKey: ["query", name],
    queryFn: () => dataOf(api.GET("/v1/queries/{query}", { params: { path: { query: name } } })),
    refetchInterval: usePoll(POLL_MS, true),
  });
  const change = useChange(name);
  const query = found.data;
  return (
    <Page
      title={name}
      crumbs={[{ label: "Queries", to: "/queries" }]}
      beside={query && <StateLine query={query} />}
      actions={query && <Actions query={query} change={change} />}
    >
      {change.error && <Problem error={change.error} title="The query was not changed" />}
      {found.isPending && <Waiting />}
      {found.error && <Problem error={found.error} retry={() => void found.refetch()} />}
      {query && <Cause query={query} />}
      {query && (
        <Tabs
          value={tab}
          keepMounted={false}
          onChange={(value) => void navigate({ search: { tab: value ?? undefined }, replace: true })}
        >
          <Tabs.List mb="sm">
            {TABS.map((one) => (
              <Tabs.Tab key={one} value={one}>
                {one}
              </Tabs.Tab>
            ))}
          </Tabs.List>
          <Tabs.Panel value="Statement">
            <Statement query={query} />
          </Tabs.Panel>
          <Tabs.Panel value="Plan">
            {query.plan ? <Plan plan={query.plan} /> : <Text size="sm">The query has no plan.</Text>}
          </Tabs.Panel>
          <Tabs.Panel value="Events">
            <Events query={name} />
          </Tabs.Panel>
          <Tabs.Panel value="Metrics">
            <Metrics query={name} metrics={query.status.metrics} />
          </Tabs.Panel>
          <Tabs.Panel value="Logs">
            <Logs query={name} />
          </Tabs.Panel>
          <Tabs.Panel value="Versions">
            <Versions query={name} />
          </Tabs.Panel>
          <Tabs.Panel value="Code">
            <ExportedCode name={`query:${quoted(query.name)}`} curl={curl("GET", pathOf("queries", query.name))} />
          </Tabs.Panel>
        </Tabs>
      )}
    </Page>
  );
}

function StateLine({ query }: { query: QueryView }): ReactNode {
  const { status } = query;
  const restarts = status.restarts > 0 ? `, ${status.restarts} restarts` : "";
  return (
    <Group gap="xs">
      <State state={status.state} />
      <Text size="sm" c="dimmed">
        {status.since ? `for ${age(status.since)}` : ""}
        {restarts}
      </Text>
    </Group>
  );
}

/** Why the query is in its state, and what to do: nothing is more urgent on this page. */
function Cause({ query }: { query: QueryView }): ReactNode {
  const { message } = query.status;
  // Of a query that runs again the last failure is history, which its events show.
  const error = isInTrouble(query.status) ? query.status.error : undefined;
  if (!error && !message) return null;
  if (!error) return <Text size="sm">{message}</Text>;
  return (
    <Alert
      className="problem"
      role="alert"
      variant="default"
      icon={<IconAlertTriangle aria-hidden />}
      title={error.detail}
    >
      <Stack gap={6}>
        {message && message !== error.detail && <Text size="sm">{message}</Text>}
        {error.hint && (
          <Text size="sm" fw={600}>
            {error.hint}
          </Text>
        )}
        <Facts
          facts={[
            ["Code", error.code],
            ["Expression", error.expression],
            ["Columns", error.columns?.join(", ")],
            ["Place", error.position && `line ${error.position.line}, column ${error.position.column}`],
          ]}
        />
        <Cure query={query} />
      </Stack>
    </Alert>
  );
}

function Statement({ query }: { query: QueryView }): ReactNode {
  const [edits, { open, close }] = useDisclosure(false);
  return (
    <Stack gap="md">
      {edits ? (
        <Suspense fallback={<Waiting />}>
          <EditQuery query={query} close={close} />
        </Suspense>
      ) : (
        <>
          <Source text={query.sql} label="SQL" />
          <Button size="xs" variant="default" className="start" onClick={open}>
            Change the statement
          </Button>
        </>
      )}
      <Facts
        facts={[
          ["Reads", <Relations key="reads" names={query.sources} />],
          ["Writes", <Relations key="writes" names={[query.sink]} />],
          ["Kind", query.kind.replaceAll("_", " ")],
          ["Context", [query.database, query.schema, query.store].filter(Boolean).join(" · ")],
          ["Created", `${localTime(query.created_at)} by ${query.created_by}`],
          ["Changed", `${localTime(query.updated_at)}, version ${query.generation}`],
          ["Comment", query.comment],
        ]}
      />
      {query.status.conditions.length > 0 && (
        <Section title="Conditions">
          <Facts
            facts={query.status.conditions.map(
              (one) => [one.type, one.message ?? (one.status ? "yes" : "no")] as const,
            )}
          />
        </Section>
      )}
    </Stack>
  );
}

function Relations({ names }: { names: readonly string[] }): ReactNode {
  return (
    <Group gap="sm">
      {[...new Set(names)].map((name) => (
        <Anchor key={name} component={Link} to="/relations/$relation" params={{ relation: name } as never} size="sm">
          {name}
        </Anchor>
      ))}
    </Group>
  );
}

type Change = { said: string; call: () => Promise<QueryView> };

function useChange(name: string): UseMutationResult<QueryView, Error, Change> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ call }: Change) => call(),
    onSuccess: (view) => {
      client.setQueryData(["query", name], view);
      void client.invalidateQueries({ queryKey: ["query", name] });
    },
  });
}

type ActionsProps = { query: QueryView; change: UseMutationResult<QueryView, Error, Change> };

function Actions({ query, change }: ActionsProps): ReactNode {
  const path = { path: { query: quoted(query.name) } };
  const want = (desired_state: Schemas["DesiredState"], said: string): void =>
    change.mutate({
      said,
      call: () => dataOf(api.PATCH("/v1/queries/{query}", { params: path, body: { desired_state } })),
    });
  const restart = (body: Schemas["RestartBody"] | undefined, said: string): void =>
    change.mutate({
      said,
      call: () => dataOf(api.POST("/v1/queries/{query}:restart", { params: path, body })),
    });
  const stopped = query.desired_state === "stopped";
  const record = recordOf(query);
  return (
    <>
      <LineageButton root={`query:${quoted(query.name)}`} />
      <Text size="sm" c="dimmed" role="status" className="said">
        {change.isSuccess && change.variables.said}
      </Text>
      <Button
        size="xs"
        variant={stopped ? "filled" : "default"}
        loading={change.isPending}
        onClick={() => (stopped ? want("running", "It will start.") : want("stopped", "It will stop."))}
      >
        {stopped ? "Start" : "Stop"}
      </Button>
      <Menu position="bottom-end" withinPortal>
        <Menu.Target>
          <Button size="xs" variant="default" disabled={change.isPending}>
            Restart
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item onClick={() => restart(undefined, "It restarts from its checkpoint.")}>
            From its last checkpoint
          </Menu.Item>
          {record && (
            <Menu.Item onClick={() => restart({ skip_record: record }, `It restarts without record ${record}.`)}>
              {`Without the record that it failed at, ${record}`}
            </Menu.Item>
          )}
          <Menu.Item onClick={() => restart({ from: "earliest" }, "It restarts from the beginning.")}>
            From the beginning of its sources: repeats rows
          </Menu.Item>
          <Menu.Item onClick={() => restart({ from: "latest" }, "It restarts from the end.")}>
            From the end of its sources: leaves rows out
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      <More query={query} />
    </>
  );
}
