import { Button, Checkbox, Grid, Group, NumberInput, Stack, Text, TextInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, lazy, type ReactNode, Suspense, useMemo, useState } from "react";
import { quoted } from "../api/names";
import { asApiError } from "../api/problem";
import { runSql } from "../api/statements";
import { functionForms, type NewFunction as Given, SAMPLE, statements } from "../functions/code";
import { place } from "../functions/faults";
import { AsCode } from "../parts/AsCode";
import { Faults } from "../parts/Faults";
import { Page, Section } from "../parts/Page";
import { Problem } from "../parts/Problem";
import { Waiting } from "../parts/Rows";
import { useValidation } from "../sql/validation";

const PythonEditor = lazy(() => import("../functions/PythonEditor"));
const NONE: readonly never[] = [];

/** Writes a function in Python and its signature; the server checks both meanwhile. */
export function NewFunction(): ReactNode {
  const [given, setGiven] = useState(SAMPLE);
  const change = (more: Partial<Given>): void => setGiven((old) => ({ ...old, ...more }));
  const client = useQueryClient();
  const navigate = useNavigate();
  const made = useMemo(() => statements(given), [given]);
  const complete = [given.name, given.returns, given.handler].every((value) => value.trim() !== "");
  const checked = useValidation(complete ? made.sql : "", {});
  const create = useMutation({
    mutationFn: ({ sql }: { sql: string }) => runSql(sql, true),
    onSuccess: () => {
      void client.invalidateQueries();
      void navigate({ to: "/functions/$function", params: { function: quoted(given.name) } as never });
    },
  });
  const placed = useMemo(() => {
    const faults = checked.state === "checked" ? checked.faults : NONE;
    // Without its source a function cannot be checked: what is said of it then means nothing.
    const broken = faults.filter(({ code, position }) => position?.offset === 0 && code !== "already-exists");
    return place(broken.length > 0 ? broken : faults, made, given.code);
  }, [checked, made, given.code]);
  const { fields } = placed;
  const send = (event: FormEvent): void => {
    event.preventDefault();
    if (complete) create.mutate(made);
  };
  return (
    <Page title="New function" crumbs={[{ label: "Functions", to: "/functions" }]}>
      <form onSubmit={send}>
        <Grid gap="lg">
          <Grid.Col span={{ base: 12, md: 4 }}>
            <Stack gap="sm">
              <TextInput
                label="Name"
                description="Of the function and of its source."
                value={given.name}
                error={fields.name}
                onChange={(event) => change({ name: event.currentTarget.value.trim() })}
              />
              <TextInput
                label="Arguments"
                description="Name and SQL type of each, with commas between."
                value={given.arguments}
                error={fields.arguments}
                onChange={(event) => change({ arguments: event.currentTarget.value })}
              />
              <TextInput
                label="Returns"
                description="A SQL type."
                value={given.returns}
                error={fields.returns}
                onChange={(event) => change({ returns: event.currentTarget.value })}
              />
              <TextInput
                label="Handler"
                description="The function in the code; a class for an aggregate."
                value={given.handler}
                error={fields.handler}
                onChange={(event) => change({ handler: event.currentTarget.value.trim() })}
              />
              <NumberInput
                label="Time-out in seconds"
                description="Of all calls in one partition of one batch."
                min={1}
                max={3600}
                allowDecimal={false}
                value={given.timeout}
                error={fields.timeout}
                onChange={(timeout) => change({ timeout: Number(timeout) || 1 })}
              />
              <TextInput
                label="Comment"
                value={given.comment}
                onChange={(event) => change({ comment: event.currentTarget.value })}
              />
              <Checkbox
                label="Replace a function of this name"
                description="One that queries call keeps its signature."
                checked={given.replace}
                onChange={(event) => change({ replace: event.currentTarget.checked })}
              />
            </Stack>
          </Grid.Col>
          <Grid.Col span={{ base: 12, md: 8 }}>
            <Stack gap="sm">
              <Suspense fallback={<Waiting />}>
                <PythonEditor text={given.code} marks={placed.marks} onChange={(code) => change({ code })} />
              </Suspense>
              {placed.rest.length > 0 && <Faults faults={placed.rest} places={false} />}
              {checked.state === "failed" && <Problem error={checked.error} title="It could not be checked" />}
              {create.error && <Problem error={asApiError(create.error)} title="The function was not created" />}
              <Group justify="space-between">
                <Text size="sm" c="dimmed" role="status">
                  {complete ? verdict(checked) : "Fill in name, type of the result and handler."}
                </Text>
                <Button type="submit" disabled={!complete} loading={create.isPending}>
                  {given.replace ? "Create or replace" : "Create"}
                </Button>
              </Group>
            </Stack>
          </Grid.Col>
        </Grid>
      </form>
      {complete && (
        <Section title="As code">
          <AsCode forms={functionForms(given)} />
        </Section>
      )}
    </Page>
  );
}

function verdict(checked: ReturnType<typeof useValidation>): string {
  if (checked.state !== "checked") return checked.state === "failed" ? "" : "Checking…";
  return checked.faults.length === 0 ? "The server finds no fault." : "The server finds faults.";
}
