import { Button, Group, Stack, Text } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { api, dataOf } from "../api/client";
import { curl, pathOf, shell } from "../api/code";
import { quoted } from "../api/names";
import { asApiError, type Schemas } from "../api/problem";
import { AsCode, type Forms } from "../parts/AsCode";
import { Problem } from "../parts/Problem";
import { Rows } from "../parts/Rows";
import { CheckedText } from "../sql/CheckedText";
import { useValidation } from "../sql/validation";
import { CHANGES } from "./parts";

type View = Schemas["ApplicationView"];

function body({ database, schema, store, comment, desired_state }: View, sql: string): Schemas["ApplicationBody"] {
  return { sql, database, schema, store, comment, desired_state };
}

function formsOf(view: View, sql: string): Forms {
  const context = ["database", "schema", "store"] as const;
  const flags = context.flatMap((one) => (view[one] ? [` --${one} ${shell(view[one])}`] : []));
  return {
    curl: curl("PUT", pathOf("applications", view.name), body(view, sql)),
    leat: `leat application apply ${shell(quoted(view.name))} -f application.sql${flags.join("")}`,
  };
}

/** Gives an application another text: what becomes of each query is shown before it is sent. */
export function EditText({ view: newest, close }: { view: View; close: () => void }): ReactNode {
  // The page reads the application again meanwhile; with the newest generation it would overwrite what others changed.
  const [view] = useState(newest);
  const [text, setText] = useState(view.sql);
  const client = useQueryClient();
  const changed = text.trim() !== view.sql.trim();
  const checked = useValidation(changed ? text : "", view);
  const save = useMutation({
    mutationFn: (sql: string) =>
      dataOf(
        api.PUT("/v1/applications/{application}", {
          // What somebody else has changed meanwhile is not overwritten.
          params: { path: { application: quoted(view.name) }, header: { "If-Match": `"${view.generation}"` } },
          body: body(view, sql),
        }),
      ),
    onSuccess: () => {
      void client.invalidateQueries();
      close();
    },
  });
  const refused = save.error && save.variables === text ? asApiError(save.error) : null;
  return (
    <Stack gap="sm">
      <CheckedText noun="text" text={text} change={setText} checked={checked} refused={refused} />
      {checked.state === "checked" && checked.faults.length === 0 && <Outcome statements={checked.statements} />}
      {save.error && <Problem error={save.error} title="The application was not changed" />}
      <Group>
        <Button size="xs" disabled={!changed} loading={save.isPending} onClick={() => save.mutate(text)}>
          Apply the text
        </Button>
        <Button size="xs" variant="default" onClick={close}>
          Cancel
        </Button>
      </Group>
      {changed && <AsCode forms={formsOf(view, text)} />}
    </Stack>
  );
}

function Outcome({ statements }: { statements: readonly Schemas["ValidatedStatement"][] }): ReactNode {
  const plan = statements[0]?.plan as Schemas["ApplicationPlan"] | null | undefined;
  if (!plan?.queries) return null;
  return (
    <>
      <Rows label="What becomes of each query" columns={CHANGES} items={plan.queries} keyOf={({ name }) => name} />
      {!!plan.removed?.length && <Text size="sm">It ends: {plan.removed?.join(", ")}</Text>}
    </>
  );
}
