import { Button, Grid, Group, Paper, Stack, Text, TextInput } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { api, dataOf } from "../api/client";
import { quoted } from "../api/names";
import { ApiError, asApiError, type FaultView, type Schemas } from "../api/problem";
import { AsCode } from "../parts/AsCode";
import { Section } from "../parts/Page";
import { Problem } from "../parts/Problem";
import { State } from "../parts/State";
import { putStore, storeBody, storeForms, tryStore } from "./api";
import { Fields } from "./Fields";
import { type Draft, draftOf, type Field, type Form, NOTHING, place } from "./fields";

type Props = { form: Form; kind: Field; store?: Schemas["StoreView"] };
const NONE: readonly FaultView[] = [];
const REGISTRY = "#/schema_registry";

/** Creates a store of a kind, or changes one. */
export function StoreForm({ form, kind, store: newest }: Props): ReactNode {
  // The page reads the store again meanwhile; with the newest generation it would overwrite what others changed.
  const [store] = useState(newest);
  const all = useMemo(() => [...kind.fields, ...form.common], [kind, form]);
  const [name, setName] = useState(store?.name ?? "");
  const [draft, setDraft] = useState<Draft>(() => (store ? draftOf([kind, ...form.common], store) : NOTHING));
  const offers = useOffers();
  const client = useQueryClient();
  const navigate = useNavigate();
  const save = useMutation({
    // The values of secrets stay in this form: neither variables nor an answer of the mutation holds them.
    mutationFn: () => putStore(name, storeBody(form, kind, draft), store?.generation),
    onSuccess: () => {
      void client.invalidateQueries();
      void navigate({ to: "/stores/$store", params: { store: quoted(name) } as never });
    },
  });
  const check = useMutation({ mutationFn: () => tryStore(name, storeBody(form, kind, draft), store?.generation) });
  const failed = save.error ?? check.error;
  const error = failed && asApiError(failed);
  const taken = error?.code === "already-exists";
  const placed = place(all, draft, error && !taken ? error.faults : NONE);
  const body = useRef<HTMLFormElement>(null);
  useEffect(() => {
    if (failed) body.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
  }, [failed]);
  const send = (event: FormEvent): void => {
    event.preventDefault();
    check.reset();
    if (name !== "") save.mutate();
  };
  const tries = (): void => {
    save.reset();
    check.mutate();
  };
  const change = (more: Partial<Draft>): void => {
    // The answer was about other settings.
    if (check.isSuccess) check.reset();
    setDraft((old) => ({ ...old, ...more }));
  };
  const inputs = { draft, change, faults: placed.at, offers, stored: store !== undefined };
  return (
    <Grid gap="lg">
      <Grid.Col span={{ base: 12, md: 6 }}>
        <form ref={body} onSubmit={send} noValidate autoComplete="off">
          <Stack gap="sm">
            {!store && (
              <TextInput
                label="Name"
                description="Taken as it is written, upper case too."
                withAsterisk
                aria-required
                data-autofocus
                autoFocus
                autoComplete="off"
                spellCheck={false}
                value={name}
                error={taken ? error.message : undefined}
                onChange={(event) => setName(event.currentTarget.value.trim())}
              />
            )}
            <Fields {...inputs} fields={kind.fields} />
            <Fields {...inputs} fields={form.common} />
            {error && (
              <Problem
                error={remaining(error, placed.rest)}
                title={save.error ? title(store !== undefined) : "The connection was not tested"}
              />
            )}
            <div role="status">{check.data && <Answer status={check.data.status} />}</div>
            <Group>
              <Button type="submit" disabled={name === ""} loading={save.isPending}>
                {store ? "Save" : "Create"}
              </Button>
              <Button variant="default" disabled={name === ""} loading={check.isPending} onClick={tries}>
                Test the connection
              </Button>
            </Group>
          </Stack>
        </form>
      </Grid.Col>
      <Grid.Col span={{ base: 12, md: 6 }}>
        {name !== "" && (
          <Section title="As code">
            <AsCode forms={storeForms(form, kind, name, draft)} />
          </Section>
        )}
      </Grid.Col>
    </Grid>
  );
}

/** Whether the system answered with the settings of the form. */
function Answer({ status }: { status: Schemas["StoreStatus"] }): ReactNode {
  const server = Object.entries(status.server ?? {}).map(([name, value]) => `${name} ${value}`);
  const said = status.state === "ready" ? ["It answers", ...server].join(", ") : (status.message ?? "");
  return (
    <Paper withBorder p="xs">
      <State state={status.state} />
      <Text size="sm" className="break">
        {said}
      </Text>
      <Text size="xs" c="dimmed">
        Nothing was stored.
      </Text>
    </Paper>
  );
}

const title = (stored: boolean): string => (stored ? "The store was not changed" : "The store was not created");

/** An error without the faults that stand at their fields. */
function remaining(error: ApiError, rest: readonly FaultView[]): ApiError {
  if (rest.length === error.faults.length) return error;
  const count = error.faults.length - rest.length;
  const detail = count === 1 ? "One field has a fault." : `${count} fields have faults.`;
  return new ApiError(error.code, error.status, detail, rest, error.requestId);
}

/** The schema registries that a store may name. */
function useOffers(): Record<string, string[]> {
  const found = useQuery({
    queryKey: ["stores", "registries"],
    queryFn: () => dataOf(api.GET("/v1/schema-registries", { params: { query: { page_size: 500 } } })),
  });
  return { [REGISTRY]: found.data?.items.map(({ name }) => name) ?? [] };
}
