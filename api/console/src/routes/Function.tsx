import { Button, Stack, Text } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { lazy, type ReactNode, Suspense, useState } from "react";
import { ObjectGrants } from "../access/ObjectGrants";
import { api, dataOf } from "../api/client";
import { curl, pathOf, shell } from "../api/code";
import { quoted } from "../api/names";
import type { Schemas } from "../api/problem";
import { MOST_QUERIES, useQueryList } from "../api/queries";
import { callersOf, signature } from "../functions/code";
import { ExportedCode } from "../parts/AsCode";
import { Confirm } from "../parts/Confirm";
import { NameLinks } from "../parts/Names";
import { Facts, Page, Section, Source } from "../parts/Page";
import { Problem } from "../parts/Problem";
import { Waiting } from "../parts/Rows";
import { localTime } from "../parts/time";

type FunctionView = Schemas["FunctionView"];
const EditSource = lazy(() => import("../functions/EditSource"));

/** One function: how it is called, its code, and who calls it. */
export function OneFunction(): ReactNode {
  const { function: path } = useParams({ from: "/inside/functions/$function" });
  const client = useQueryClient();
  const navigate = useNavigate();
  const found = useQuery({
    queryKey: ["functions", "one", path],
    queryFn: () => dataOf(api.GET("/v1/functions/{function}", { params: { path: { function: path } } })),
  });
  const leave = (): void => {
    void navigate({ to: "/functions" });
    void client.invalidateQueries({ queryKey: ["pages", "functions"] });
  };
  const one = found.data;
  return (
    <Page
      title={one?.name ?? path}
      crumbs={[{ label: "Functions", to: "/functions" }]}
      actions={one && <Drop name={one.name} done={leave} />}
    >
      {found.isPending && <Waiting />}
      {found.error && <Problem error={found.error} retry={() => void found.refetch()} />}
      {one && <Details one={one} />}
    </Page>
  );
}

function Details({ one }: { one: FunctionView }): ReactNode {
  const queries = useQueryList();
  const source = useQuery({
    queryKey: ["functions", "source", one.source],
    queryFn: () =>
      dataOf(
        api.GET("/v1/function-sources/{function_source}", {
          params: { path: { function_source: quoted(one.source) } },
        }),
      ),
  });
  const names = callersOf(one.name, queries.data?.items ?? []);
  return (
    <>
      <Facts
        facts={[
          ["Signature", <span key="signature" className="mono">{`${signature(one)} → ${one.returns}`}</span>],
          ["Kind", one.aggregate ? "aggregate: one value for many rows" : "one value for each row"],
          ["Language", source.data?.language],
          ["Source", `${one.source}, handler ${one.handler}`],
          ["Time-out", source.data?.language !== "java" && `${one.timeout_seconds} s`],
          ["Called by", queries.data && <NameLinks key="callers" kind="query" names={names} none="no query" />],
          ["Owner", one.owner],
          ["Comment", one.comment],
          ["Changed", localTime(one.updated_at)],
        ]}
      />
      {queries.data?.next_page_token && (
        <Text size="sm">Callers were looked for in the first {MOST_QUERIES} queries.</Text>
      )}
      <Section title="Code">
        {source.isPending && <Waiting />}
        {source.error && <Problem error={source.error} retry={() => void source.refetch()} />}
        {source.data && <Code source={source.data} />}
      </Section>
      <ObjectGrants on="function" name={quoted(one.name)} />
      <Section title="As code">
        <ExportedCode
          name={[`function_source:${quoted(one.source)}`, `function:${quoted(one.name)}`]}
          curl={curl("GET", pathOf("functions", one.name))}
        />
      </Section>
    </>
  );
}

function Code({ source }: { source: Schemas["FunctionSourceView"] }): ReactNode {
  const client = useQueryClient();
  const [opened, setOpened] = useState(false);
  const reload = (): void => {
    void client.invalidateQueries({ queryKey: ["functions"] });
    void client.invalidateQueries({ queryKey: ["export"] });
  };
  if (source.language !== "python") {
    return <Text size="sm">{`${source.file}, SHA-256 ${source.digest}. A jar is replaced by its source.`}</Text>;
  }
  if (opened) {
    return (
      <Suspense fallback={<Waiting />}>
        <EditSource source={source} close={() => setOpened(false)} done={reload} />
      </Suspense>
    );
  }
  return (
    <Stack gap="xs">
      <Source text={source.content} label={source.file} />
      <Button size="xs" variant="default" className="start" onClick={() => setOpened(true)}>
        Edit the code
      </Button>
    </Stack>
  );
}

function Drop({ name, done }: { name: string; done: () => void }): ReactNode {
  const path = quoted(name);
  return (
    <Confirm
      verb="Drop"
      of={`function ${name}`}
      title={`Drop function ${name}?`}
      consequence="Its source stays. The server refuses this while a query calls it, and names each."
      forms={{
        sql: `DROP FUNCTION ${path};`,
        curl: curl("DELETE", pathOf("functions", name)),
        leat: `leat function delete ${shell(path)}`,
      }}
      call={() => api.DELETE("/v1/functions/{function}", { params: { path: { function: path } } })}
      done={done}
    />
  );
}
