import { Anchor, Button, Grid, Group, Paper, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { lazy, type ReactNode, Suspense, useCallback } from "react";
import { api, dataOf } from "../api/client";
import { figuresOf, isInTrouble, rate as written } from "../api/figures";
import { quoted } from "../api/names";
import type { Schemas } from "../api/problem";
import { Newest } from "../events/Newest";
import { usePoll } from "../events/useFeed";
import { Boundary } from "../parts/Boundary";
import { Cure } from "../parts/Cure";
import { Empty, Page, Source } from "../parts/Page";
import { Problem } from "../parts/Problem";
import { RecordsAt } from "../parts/RecordsAt";
import { Waiting } from "../parts/Rows";
import { State } from "../parts/State";
import { openText } from "../sql/drafts";
import { SAMPLE } from "../sql/sample";

const Flow = lazy(() => import("../parts/Flow"));
const POLL_MS = 5_000;
// A drawing of more is no help, and lists have pages.
const MOST = 100;
// What else has failed is one click away: the newest events stay in sight.
const FAILURES = 2;
type QueryView = Schemas["QueryView"];

/** What flows: stores, queries and sinks as a graph, and what has failed beside it. */
export function Home(): ReactNode {
  const { at } = useSearch({ from: "/inside/" });
  const navigate = useNavigate({ from: "/" });
  const look = useCallback(
    (relation: string | undefined): void =>
      void navigate({
        search: (old: { at?: string }) => ({ at: old.at === relation ? undefined : relation }),
        resetScroll: false,
      }),
    [navigate],
  );
  const found = useQuery({
    queryKey: ["flow"],
    queryFn: () => dataOf(api.GET("/v1/queries", { params: { query: { page_size: MOST } } })),
    refetchInterval: usePoll(POLL_MS, true),
  });
  const queries = found.data?.items ?? [];
  const more = Boolean(found.data?.next_page_token);
  const failed = queries
    .filter(({ status }) => isInTrouble(status))
    .sort((a, b) => (b.status.since ?? "").localeCompare(a.status.since ?? ""));
  return (
    <Page title="Flow" beside={found.data && <Counts queries={queries} more={more} />}>
      {found.isPending && <Waiting />}
      {found.error && <Problem error={found.error} retry={() => void found.refetch()} />}
      {found.data && queries.length === 0 && <FirstSteps />}
      {queries.length > 0 && (
        <Grid gap="md">
          <Grid.Col span={{ base: 12, md: 9 }}>
            <Boundary>
              <Suspense fallback={<Waiting />}>
                <Flow queries={queries} at={at} look={look} />
              </Suspense>
            </Boundary>
          </Grid.Col>
          <Grid.Col span={{ base: 12, md: 3 }}>
            <Stack gap="sm">
              {at !== undefined && <RecordsAt key={at} relation={at} close={() => look(undefined)} />}
              {failed.slice(0, FAILURES).map((query) => (
                <Failure key={query.id} query={query} />
              ))}
              {failed.length > FAILURES && (
                <Anchor component={Link} to="/queries" search={{ state: "failed" } as never} size="sm">
                  {`${failed.length - FAILURES} more have an error`}
                </Anchor>
              )}
              <Newest />
            </Stack>
          </Grid.Col>
        </Grid>
      )}
      {found.data && queries.length === 0 && <Newest />}
    </Page>
  );
}

function Counts({ queries, more }: { queries: readonly QueryView[]; more: boolean }): ReactNode {
  const counts = new Map<string, number>();
  for (const { status } of queries) counts.set(status.state, (counts.get(status.state) ?? 0) + 1);
  const rate = queries.reduce((sum, query) => sum + (figuresOf(query).read ?? 0), 0);
  return (
    <Group gap="md" role="status" aria-label="Queries by state">
      {[...counts].map(([state, count]) => (
        <Group gap={6} key={state}>
          <Text fw={700}>{count}</Text>
          <Anchor component={Link} to="/queries" search={{ state } as never} underline="hover" c="inherit">
            <State state={state} />
          </Anchor>
        </Group>
      ))}
      {rate > 0 && <Text size="sm">{written(rate)} rows read per second</Text>}
      {more && (
        <Text size="sm" c="dimmed">
          the first {MOST} queries
        </Text>
      )}
    </Group>
  );
}

function Failure({ query }: { query: QueryView }): ReactNode {
  const { error, message, state } = query.status;
  return (
    <Paper withBorder p="sm" className="problem">
      <Group justify="space-between" mb={4}>
        <Anchor
          component={Link}
          to="/queries/$query"
          params={{ query: quoted(query.name) } as never}
          fw={600}
          size="sm"
          className="what"
          title={query.name}
        >
          {query.name}
        </Anchor>
        <State state={state} />
      </Group>
      <Text size="sm" className="break">
        {error?.detail ?? message ?? "It reported no cause; its log may."}
      </Text>
      {error?.hint && (
        <Text size="sm" fw={600} mt={4} className="break">
          {error.hint}
        </Text>
      )}
      <Cure query={query} />
    </Paper>
  );
}

function FirstSteps(): ReactNode {
  const navigate = useNavigate();
  const open = (): void => {
    openText(SAMPLE);
    void navigate({ to: "/sql" });
  };
  return (
    <Empty title="No query runs yet">
      <Text size="sm" mb="sm">
        A query reads streams from your stores and writes another one, until you stop it. This sample reads the page
        views that leat dev produces.
      </Text>
      <Source text={SAMPLE} label="Sample statements" />
      <Button mt="md" onClick={open}>
        Open the sample
      </Button>
    </Empty>
  );
}
