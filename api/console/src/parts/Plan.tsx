import { Anchor, Grid, List, Stack, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Schemas } from "../api/problem";
import { Facts, Section } from "./Page";
import { Columns, Properties } from "./Properties";

type AnyPlan = NonNullable<Schemas["ValidatedStatement"]["plan"]>;

/** How a statement would run, whichever kind it is. */
export function AnyPlanView({ plan }: { plan: AnyPlan }): ReactNode {
  if ("sink" in plan) return <Plan plan={plan} />;
  if ("queries" in plan) return <ApplicationPlan plan={plan} />;
  if ("changelog" in plan) return <SelectPlan plan={plan} />;
  if ("fqn" in plan) return <StreamPlan plan={plan} />;
  return null;
}

/** The plan of a continuous statement: how it runs, what it reads and writes, and why. */
export function Plan({ plan }: { plan: Schemas["Plan"] }): ReactNode {
  const { sink } = plan;
  return (
    <Stack gap="md">
      <Grid gap="lg">
        <Grid.Col span={{ base: 12, md: 6 }}>
          <Section title="How it runs">
            <Facts
              facts={[
                ["Mode", [plan.mode.replace("_", " "), plan.mode_reason].filter(Boolean).join(": ")],
                ["Delivery", plan.delivery?.replaceAll("_", " ")],
                ["Output", plan.output_mode],
                ["Driver", plan.driver],
                ["Change", plan.change && `${plan.change.class}: ${plan.change.reason}`],
                ["Reads", <Sources key="reads" sources={plan.sources} />],
                ["Joins", plan.joins.length > 0 && <Joins joins={plan.joins} />],
                ["Window", plan.window && `${plan.window.kind}, ${plan.window.size_ms} ms`],
                ["Writes", `${sink.fqn}, ${sink.kind.replace("_", " ")} in ${sink.store} (${sink.store_kind})`],
                [
                  "Entity",
                  `${sink.entity} (${sink.entity_action === "create" ? "is created" : "exists, is reused"})`,
                ],
              ]}
            />
          </Section>
        </Grid.Col>
        <Grid.Col span={{ base: 12, md: 6 }}>
          <Section title="Properties of the sink">
            <Properties effective={sink.properties} />
          </Section>
        </Grid.Col>
      </Grid>
      <Section title="Columns of the sink">
        <Columns columns={sink.columns} keys={sink.primary_key} />
      </Section>
    </Stack>
  );
}

function Sources({ sources }: { sources: readonly Schemas["PlanSource"][] }): ReactNode {
  return (
    <List size="sm" listStyleType="none">
      {sources.map((source, index) => (
        // A self join reads one relation twice.
        <List.Item key={`${index} ${source.fqn}`}>
          <Anchor
            component={Link}
            to="/relations/$relation"
            params={{ relation: source.fqn } as never}
            size="sm"
            underline="always"
          >
            {source.fqn}
          </Anchor>
          {`, ${source.kind.replace("_", " ")} in ${source.store} (${source.store_kind})`}
          {source.left_most && ", left-most"}
        </List.Item>
      ))}
    </List>
  );
}

function Joins({ joins }: { joins: readonly Schemas["PlanJoin"][] }): ReactNode {
  return (
    <List size="sm" listStyleType="none">
      {joins.map((join) => (
        <List.Item key={`${join.left} ${join.right} ${join.kind}`}>
          {`${join.type} ${join.kind}: ${join.left} with ${join.right}`}
          {join.within && `, ${join.within.before_ms} ms before to ${join.within.after_ms} ms after`}
        </List.Item>
      ))}
    </List>
  );
}

function SelectPlan({ plan }: { plan: Schemas["SelectPlan"] }): ReactNode {
  return (
    <Stack gap="md">
      <Facts
        facts={[
          ["Reads", <Sources key="reads" sources={plan.sources} />],
          ["Rows", plan.changelog ? "as changes, a group's newest row in place of the one before" : "each once"],
        ]}
      />
      <Columns columns={plan.columns} />
    </Stack>
  );
}

function StreamPlan({ plan }: { plan: Schemas["StreamPlan"] }): ReactNode {
  return (
    <Stack gap="md">
      <Facts facts={[["Declares", plan.fqn]]} />
      <Properties effective={plan.properties} />
      {plan.columns && <Columns columns={plan.columns} keys={plan.primary_key ?? []} />}
    </Stack>
  );
}

function ApplicationPlan({ plan }: { plan: Schemas["ApplicationPlan"] }): ReactNode {
  return (
    <Stack gap="md">
      {plan.queries?.map((query) => (
        <Section key={query.name} title={`${query.name}: ${query.action}`}>
          <Plan plan={query.plan} />
        </Section>
      ))}
      {plan.removed?.length ? <Text size="sm">Ends: {plan.removed.join(", ")}</Text> : null}
    </Stack>
  );
}
