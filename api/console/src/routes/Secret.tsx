import { Button, Group, Stack, Text } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { ObjectGrants } from "../access/ObjectGrants";
import { api, dataOf } from "../api/client";
import { curl, pathOf, shell } from "../api/code";
import { quoted } from "../api/names";
import type { Schemas } from "../api/problem";
import { useQueryList } from "../api/queries";
import { ExportedCode } from "../parts/AsCode";
import { Confirm } from "../parts/Confirm";
import { NameLinks } from "../parts/Names";
import { Facts, Page, Section } from "../parts/Page";
import { Problem } from "../parts/Problem";
import { Waiting } from "../parts/Rows";
import { localTime } from "../parts/time";
import { applyForms, queriesOf, usesOf } from "../secrets/code";
import { MOST, useUsers } from "../secrets/lists";
import { NewValue } from "../secrets/NewSecret";

type SecretView = Schemas["SecretView"];

/** One secret: who uses it, a new value, and the restart of what has connected with the old one. */
export function Secret(): ReactNode {
  const { secret: path } = useParams({ from: "/inside/secrets/$secret" });
  const client = useQueryClient();
  const navigate = useNavigate();
  const [opened, setOpened] = useState(false);
  const [stored, setStored] = useState(false);
  const found = useQuery({
    queryKey: ["secrets", "one", path],
    queryFn: () => dataOf(api.GET("/v1/secrets/{secret}", { params: { path: { secret: path } } })),
  });
  const reload = (): void => {
    void client.invalidateQueries({ queryKey: ["secrets"] });
    void client.invalidateQueries({ queryKey: ["pages", "secrets"] });
  };
  const leave = (): void => {
    void navigate({ to: "/secrets" });
    void client.invalidateQueries({ queryKey: ["pages", "secrets"] });
  };
  const secret = found.data;
  return (
    <Page
      title={secret?.name ?? path}
      crumbs={[{ label: "Secrets", to: "/secrets" }]}
      actions={
        secret && (
          <>
            {/* A value given here would take the place of the reference: the secret store is where it changes. */}
            {!secret.reference && (
              <Button size="compact-sm" variant="default" onClick={() => setOpened(true)}>
                New value
              </Button>
            )}
            <Drop name={secret.name} done={leave} />
          </>
        )
      }
    >
      {found.isPending && <Waiting />}
      {found.error && <Problem error={found.error} retry={() => void found.refetch()} />}
      {secret && stored && (
        <Text size="sm" role="status">
          The value is stored, and its stores connect with it. Jobs keep the old one until they restart.
        </Text>
      )}
      {secret && <Details secret={secret} />}
      {secret && opened && (
        <NewValue
          secret={secret}
          close={() => setOpened(false)}
          done={() => {
            setStored(true);
            reload();
          }}
        />
      )}
    </Page>
  );
}

function Details({ secret }: { secret: SecretView }): ReactNode {
  const notes = Object.entries(secret.properties ?? {});
  return (
    <>
      <Facts
        facts={[
          ["Type", secret.type.replaceAll("_", " ")],
          ["Value", secret.reference ? undefined : `number ${secret.version}, never shown`],
          ["Reference", secret.reference],
          ["Last read", secret.resolved_at && localTime(secret.resolved_at)],
          ["Cannot be read", secret.resolve_error],
          ["Owner", secret.owner],
          ["Comment", secret.comment],
          ...notes.map(([name, value]) => [`Note: ${name}`, value] as const),
          ["Created", `${localTime(secret.created_at)} by ${secret.created_by}`],
          ["Changed", localTime(secret.updated_at)],
        ]}
      />
      <Section title="Used by">
        <Used secret={secret.name} />
      </Section>
      <ObjectGrants on="secret" name={quoted(secret.name)} />
      <Section title="As code">
        <ExportedCode name={`secret:${quoted(secret.name)}`} curl={curl("GET", pathOf("secrets", secret.name))} />
      </Section>
    </>
  );
}

function Used({ secret }: { secret: string }): ReactNode {
  const users = useUsers();
  const queries = useQueryList();
  const error = users.error ?? queries.error;
  if (error) return <Problem error={error} retry={() => void Promise.all([users.refetch(), queries.refetch()])} />;
  if (!users.data || !queries.data) return <Waiting />;
  const { stores, registries } = users.data;
  const more = users.data.more || Boolean(queries.data.next_page_token);
  const uses = usesOf(secret, stores, registries);
  const names = queriesOf(uses, stores, queries.data.items);
  if (uses.stores.length === 0 && uses.registries.length === 0) {
    return <Text size="sm">No store and no schema registry that you see uses it.</Text>;
  }
  return (
    <Stack gap="xs">
      <Facts
        facts={[
          ["Stores", uses.stores.length > 0 && <NameLinks key="stores" kind="store" names={uses.stores} />],
          [
            "Schema registries",
            uses.registries.length > 0 && <NameLinks key="registries" kind="registry" names={uses.registries} />,
          ],
          ["Running queries", <NameLinks key="queries" kind="query" names={names} none="none that you see" />],
        ]}
      />
      {more && <Text size="sm">Only the first {MOST} objects of each kind were looked at.</Text>}
      <Apply secret={secret} />
    </Stack>
  );
}

function Apply({ secret }: { secret: string }): ReactNode {
  const client = useQueryClient();
  const [applied, setApplied] = useState<Schemas["AppliedSecret"]>();
  const path = quoted(secret);
  return (
    <Group gap="sm">
      <Confirm
        verb="Restart its queries"
        of="that use the secret"
        title={`Restart the queries that use ${secret}?`}
        consequence={
          <>
            Its stores connect again. Each job starts again from its checkpoint, with the value that the secret has
            now.
            <Preview path={path} />
          </>
        }
        forms={applyForms(secret)}
        call={async () =>
          setApplied(await dataOf(api.POST("/v1/secrets/{secret}:apply", { params: { path: { secret: path } } })))
        }
        done={() => void client.invalidateQueries()}
      />
      {applied && (
        <Text size="sm" role="status">
          {`Queries that restart: ${applied.queries.join(", ") || "none"}.`}
          {applied.left > 0 && ` ${applied.left} more keep the old value: you may not operate them.`}
        </Text>
      )}
    </Group>
  );
}

/** What the server would restart. It is asked for when the dialog opens. */
function Preview({ path }: { path: string }): ReactNode {
  const found = useQuery({
    queryKey: ["secrets", "preview", path],
    queryFn: () =>
      dataOf(
        api.POST("/v1/secrets/{secret}:apply", { params: { path: { secret: path }, query: { dry_run: true } } }),
      ),
    gcTime: 0,
    retry: false,
  });
  if (found.error) return <Problem error={found.error} title="What would restart is not known" />;
  if (!found.data) return <Waiting />;
  const { queries, left } = found.data;
  return (
    <Text size="sm" mt="xs" role="status" component="div" className="break">
      {"Queries that would restart: "}
      {queries.length === 0 ? "none" : <NameLinks kind="query" names={queries} most={20} />}
      {left > 0 && ` ${left} more would keep the old value: you may not operate them.`}
    </Text>
  );
}

function Drop({ name, done }: { name: string; done: () => void }): ReactNode {
  const path = quoted(name);
  return (
    <Confirm
      verb="Drop"
      of={`secret ${name}`}
      title={`Drop secret ${name}?`}
      consequence="Its value is deleted and cannot be restored. The server refuses this while a store or a schema registry uses it."
      forms={{
        sql: `DROP SECRET ${path};`,
        curl: curl("DELETE", pathOf("secrets", name)),
        leat: `leat secret delete ${shell(path)}`,
      }}
      call={() => api.DELETE("/v1/secrets/{secret}", { params: { path: { secret: path } } })}
      done={done}
    />
  );
}
