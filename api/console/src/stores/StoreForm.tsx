import { Button, Grid, Group, Stack, TextInput } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { api, dataOf } from "../api/client";
import { quoted } from "../api/names";
import { ApiError, asApiError, type FaultView, type Schemas } from "../api/problem";
import { AsCode } from "../parts/AsCode";
import { Section } from "../parts/Page";
import { Problem } from "../parts/Problem";
import { putStore, storeBody, storeForms } from "./api";
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
  const error = save.error && asApiError(save.error);
  const taken = error?.code === "already-exists";
  const placed = place(all, draft, error && !taken ? error.faults : NONE);
  const body = useRef<HTMLFormElement>(null);
  useEffect(() => {
    if (save.error) body.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
  }, [save.error]);
  const send = (event: FormEvent): void => {
    event.preventDefault();
    if (name !== "") save.mutate();
  };
  const change = (more: Partial<Draft>): void => setDraft((old) => ({ ...old, ...more }));
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
            {error && <Problem error={remaining(error, placed.rest)} title={title(store !== undefined)} />}
            <Group>
              <Button type="submit" disabled={name === ""} loading={save.isPending}>
                {store ? "Save" : "Create"}
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
