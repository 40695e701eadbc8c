import { Button, Menu, Text } from "@mantine/core";
import { type UseMutationResult, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { ObjectGrants } from "../access/ObjectGrants";
import { api, dataOf } from "../api/client";
import { curl, pathOf, shell } from "../api/code";
import { quoted } from "../api/names";
import type { Schemas } from "../api/problem";
import { runSql } from "../api/statements";
import { EditText } from "../applications/EditText";
import { Logs, Members, Newest } from "../applications/parts";
import { usePoll } from "../events/useFeed";
import { ExportedCode } from "../parts/AsCode";
import { Confirm } from "../parts/Confirm";
import { Facts, Page, Section, Source } from "../parts/Page";
import { Problem } from "../parts/Problem";
import { Waiting } from "../parts/Rows";
import { State } from "../parts/State";
import { localTime } from "../parts/time";

type View = Schemas["ApplicationView"];
const POLL_MS = 3_000;

/** One application: its state, its queries, its text. */
export function Application(): ReactNode {
  const { application: path } = useParams({ from: "/inside/applications/$application" });
  const client = useQueryClient();
  const navigate = useNavigate();
  const found = useQuery({
    queryKey: ["application", path],
    queryFn: () => dataOf(api.GET("/v1/applications/{application}", { params: { path: { application: path } } })),
    refetchInterval: usePoll(POLL_MS),
  });
  const change = useMutation({
    mutationFn: ({ call }: Change) => call(),
    onSuccess: () => {
      void client.invalidateQueries({ queryKey: ["application"] });
      void client.invalidateQueries({ queryKey: ["application-members"] });
    },
  });
  const leave = (): void => {
    void navigate({ to: "/applications" });
    void client.invalidateQueries({ queryKey: ["pages", "applications"] });
  };
  const view = found.data;
  return (
    <Page
      title={view?.name ?? path}
      crumbs={[{ label: "Applications", to: "/applications" }]}
      beside={view && <State state={view.status.state} />}
      actions={view && <Actions view={view} change={change} leave={leave} />}
    >
      {change.error && <Problem error={change.error} title="The application was not changed" />}
      {found.isPending && <Waiting />}
      {found.error && <Problem error={found.error} retry={() => void found.refetch()} />}
      {view && <Details view={view} />}
    </Page>
  );
}

type Change = { said: string; call: () => Promise<unknown> };
type ActionsProps = { view: View; change: UseMutationResult<unknown, Error, Change>; leave: () => void };

function Actions({ view, change, leave }: ActionsProps): ReactNode {
  const name = quoted(view.name);
  const restart = (only_failed: boolean, said: string): void =>
    change.mutate({
      said,
      call: () =>
        dataOf(
          api.POST("/v1/applications/{application}:restart", {
            params: { path: { application: name }, query: { only_failed } },
          }),
        ),
    });
  const stop = (): void =>
    change.mutate({ said: "Its queries will stop.", call: () => runSql(`TERMINATE APPLICATION ${name};`) });
  const stopped = view.desired_state === "stopped";
  return (
    <>
      <Text size="sm" c="dimmed" role="status" className="said">
        {change.isSuccess && change.variables.said}
      </Text>
      <Button
        size="compact-sm"
        variant={stopped ? "filled" : "default"}
        loading={change.isPending}
        onClick={() => (stopped ? restart(false, "Its queries will start.") : stop())}
      >
        {stopped ? "Start" : "Stop"}
      </Button>
      <Menu position="bottom-end" withinPortal>
        <Menu.Target>
          <Button size="compact-sm" variant="default" disabled={change.isPending || stopped}>
            Restart
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item onClick={() => restart(false, "Its queries restart from their checkpoints.")}>
            All its queries, from their checkpoints
          </Menu.Item>
          <Menu.Item onClick={() => restart(true, "Its failed queries restart from their checkpoints.")}>
            Those that have failed
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      <Confirm
        verb="Delete"
        of={`application ${view.name}`}
        title={`Delete application ${view.name}?`}
        consequence="Its queries end, with their checkpoints, and the streams that it made are deleted. Topics and their records stay. The server refuses this while others read the streams."
        forms={{
          sql: `DROP APPLICATION ${name};`,
          curl: curl("DELETE", pathOf("applications", view.name)),
          leat: `leat application delete ${shell(name)}`,
        }}
        call={() => api.DELETE("/v1/applications/{application}", { params: { path: { application: name } } })}
        done={leave}
      />
    </>
  );
}

function Details({ view }: { view: View }): ReactNode {
  const [editing, setEditing] = useState(false);
  return (
    <>
      {view.status.message && <Text size="sm">{view.status.message}</Text>}
      <Facts
        facts={[
          ["Context", [view.database, view.schema, view.store].filter(Boolean).join(" · ")],
          ["Declares", view.relations.join(", ")],
          ["Virtual relations", view.virtual_relations.join(", ")],
          ["Created", `${localTime(view.created_at)} by ${view.created_by}`],
          ["Changed", `${localTime(view.updated_at)}, version ${view.generation}`],
          ["Owner", view.owner],
          ["Comment", view.comment],
        ]}
      />
      <Section title="Queries">
        <Members view={view} />
      </Section>
      <Section title="Text">
        {editing ? (
          <EditText view={view} close={() => setEditing(false)} />
        ) : (
          <>
            <Source text={view.sql} label="SQL" />
            <Button size="xs" variant="default" mt="xs" onClick={() => setEditing(true)}>
              Change the text
            </Button>
          </>
        )}
      </Section>
      <Newest view={view} />
      <Logs name={view.name} />
      <ObjectGrants on="application" name={quoted(view.name)} />
      <Section title="As code">
        <ExportedCode
          name={`application:${quoted(view.name)}`}
          curl={curl("GET", pathOf("applications", view.name))}
        />
      </Section>
    </>
  );
}
