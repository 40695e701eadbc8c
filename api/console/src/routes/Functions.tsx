import { Anchor, Button, Group, Stack, Tabs, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { lazy, type ReactNode, Suspense } from "react";
import { api, dataOf } from "../api/client";
import { curl, pathOf, shell } from "../api/code";
import { quoted } from "../api/names";
import { PAGE_SIZE, usePages } from "../api/pages";
import type { Schemas } from "../api/problem";
import { MOST_QUERIES, useQueryList } from "../api/queries";
import { sqlForms } from "../api/statements";
import { callersOf, functionOf, SAMPLE, signature, statements } from "../functions/code";
import { type Source, useSources } from "../functions/lists";
import { AsCode } from "../parts/AsCode";
import { Confirm } from "../parts/Confirm";
import { Filter } from "../parts/Filter";
import { NameLink, NameLinks } from "../parts/Names";
import { Empty, Page } from "../parts/Page";
import { Problem } from "../parts/Problem";
import { type Column, PagedRows, Rows, Waiting } from "../parts/Rows";
import { openText } from "../sql/drafts";

const NewSource = lazy(() => import("../functions/NewSource"));
type FunctionView = Schemas["FunctionView"];
const SHOWN = 3;

/** Functions of users, and the files that they are made of. */
export function Functions(): ReactNode {
  const { tab, q } = useSearch({ from: "/inside/functions" });
  const navigate = useNavigate({ from: "/functions" });
  return (
    <Page
      title="Functions"
      actions={
        <Button component={Link} to="/new-function" size="xs">
          New function
        </Button>
      }
    >
      <Tabs
        value={tab === "sources" ? tab : "functions"}
        keepMounted={false}
        onChange={(value) => void navigate({ search: value === "sources" ? { tab: value } : {}, replace: true })}
      >
        <Tabs.List mb="sm">
          <Tabs.Tab value="functions">Functions</Tabs.Tab>
          <Tabs.Tab value="sources">Sources</Tabs.Tab>
        </Tabs.List>
        <Stack gap="sm">
          <Filter
            label="Filter by name"
            value={q}
            change={(value) => void navigate({ search: (old) => ({ ...old, q: value }), replace: true })}
          />
          <Tabs.Panel value="functions">
            <List q={q} />
          </Tabs.Panel>
          <Tabs.Panel value="sources">
            <Sources q={q} />
          </Tabs.Panel>
        </Stack>
      </Tabs>
    </Page>
  );
}

function List({ q }: { q: string | undefined }): ReactNode {
  const sources = useSources();
  const queries = useQueryList();
  const pages = usePages(["functions", q], (token) =>
    dataOf(api.GET("/v1/functions", { params: { query: { q, page_size: PAGE_SIZE, page_token: token } } })),
  );
  const languages = new Map(sources.data?.map(({ name, language }) => [name, language]));
  const columns: Column<FunctionView>[] = [
    { head: "Function", width: 170, cell: ({ name }) => <NameLink kind="function" name={name} /> },
    { head: "Signature", cell: (one) => <span className="mono">{`${signature(one)} → ${one.returns}`}</span> },
    { head: "Language", width: 90, cell: ({ source }) => languages.get(source) },
    { head: "Source", width: 130, cell: ({ source }) => source },
    {
      head: "Called by",
      cell: ({ name }) => (
        <NameLinks kind="query" names={callersOf(name, queries.data?.items ?? [])} most={SHOWN} none="no query" />
      ),
    },
  ];
  return (
    <>
      <PagedRows
        label="Functions"
        columns={columns}
        pages={pages}
        keyOf={({ id }) => id}
        empty={q ? <Empty title={`No function has ${q} in its name`} /> : <None />}
      />
      {queries.data?.next_page_token && (
        <Text size="sm">Callers were looked for in the first {MOST_QUERIES} queries.</Text>
      )}
    </>
  );
}

function None(): ReactNode {
  const { sql } = statements(SAMPLE);
  return (
    <Empty title="There is no function of yours yet">
      <Text size="sm" mb="xs">
        SQL has many functions of its own. What is missing you write in Python or Java:{" "}
        <Anchor component={Link} to="/new-function" inherit underline="always">
          begin with a sample
        </Anchor>
        , or run these statements.
      </Text>
      <AsCode forms={sqlForms(sql, true)} />
    </Empty>
  );
}

function Sources({ q = "" }: { q: string | undefined }): ReactNode {
  const client = useQueryClient();
  const [opened, { open, close }] = useDisclosure(false);
  const done = (): void => void client.invalidateQueries({ queryKey: ["functions"] });
  return (
    <Stack gap="sm" align="stretch">
      <SourceList q={q} done={done} />
      <Button size="xs" variant="default" className="start" onClick={open}>
        Send a file
      </Button>
      {opened && (
        <Suspense fallback={null}>
          <NewSource close={close} done={done} />
        </Suspense>
      )}
    </Stack>
  );
}

function SourceList({ q, done }: { q: string; done: () => void }): ReactNode {
  const navigate = useNavigate();
  const found = useSources();
  if (found.error) return <Problem error={found.error} retry={() => void found.refetch()} />;
  if (!found.data) return <Waiting />;
  const items = found.data.filter(({ name }) => name.toLowerCase().includes(q.toLowerCase()));
  if (items.length === 0) {
    return (
      <Empty title={q ? `No function source has ${q} in its name` : "There is no function source yet"}>
        <Text size="sm">
          A source is the Python file or the Java jar that functions are made of. One may serve several.
        </Text>
      </Empty>
    );
  }
  const declare = (source: Source): void => {
    openText(functionOf(source));
    void navigate({ to: "/sql" });
  };
  const columns: Column<Source>[] = [
    { head: "Source", width: 170, cell: ({ name }) => name },
    { head: "File", cell: ({ file }) => <span className="mono">{file}</span> },
    { head: "Language", width: 90, cell: ({ language }) => language },
    { head: "Characters", width: 100, cell: ({ size }) => size.toLocaleString("en-US") },
    { head: "Owner", width: 120, cell: ({ owner }) => owner },
    { head: "Comment", cell: ({ comment }) => comment },
    {
      head: "Actions",
      width: 190,
      cell: (source) => (
        <Group gap={6}>
          <Button
            size="compact-sm"
            variant="default"
            aria-label={`Declare a function of ${source.name}`}
            onClick={() => declare(source)}
          >
            Declare a function
          </Button>
          <Drop name={source.name} done={done} />
        </Group>
      ),
    },
  ];
  return <Rows label="Function sources" columns={columns} items={items} keyOf={({ name }) => name} />;
}

function Drop({ name, done }: { name: string; done: () => void }): ReactNode {
  const path = quoted(name);
  return (
    <Confirm
      verb="Drop"
      of={`function source ${name}`}
      title={`Drop function source ${name}?`}
      consequence="Its code is deleted. The server refuses this while a function uses it."
      forms={{
        sql: `DROP FUNCTION_SOURCE ${path};`,
        curl: curl("DELETE", pathOf("function-sources", name)),
        leat: `leat function-source delete ${shell(path)}`,
      }}
      call={() =>
        api.DELETE("/v1/function-sources/{function_source}", { params: { path: { function_source: path } } })
      }
      done={done}
    />
  );
}
