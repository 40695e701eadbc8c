import { Alert, Button, Group, Stack, Text } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { api, dataOf } from "../api/client";
import { curl, pathOf, shell } from "../api/code";
import { quoted } from "../api/names";
import { asApiError, type Schemas } from "../api/problem";
import { AsCode } from "../parts/AsCode";
import { Problem } from "../parts/Problem";
import { CheckedText } from "../sql/CheckedText";
import { type Checked, useValidation } from "../sql/validation";

type View = Schemas["QueryView"];
type Change = Schemas["PlanChange"];

// The words of docs/sql/changing.md.
const MEANINGS: Record<string, string> = {
  none: "Nothing changes: the statement is the same.",
  hot: "The job continues as it is.",
  "restart-from-offsets": "The job restarts and continues from its saved offsets.",
  "restart-keep-state": "The job restarts and keeps its state.",
  "new-state": "The job starts again without its state, and reads its sources again from their starting positions.",
  refused: "The query cannot change this way.",
};

/** Gives a query another statement: what becomes of its job and its state is shown before it is sent. */
export default function EditQuery({ query: newest, close }: { query: View; close: () => void }): ReactNode {
  // The page reads the query again meanwhile; with the newest generation it would overwrite what others changed.
  const [query] = useState(newest);
  const [text, setText] = useState(query.sql);
  const client = useQueryClient();
  const changed = text.trim() !== query.sql.trim();
  const checked = useValidation(changed ? text : "", query);
  const change = changed ? changeOf(checked) : undefined;
  const given = { path: { query: quoted(query.name) }, header: { "If-Match": `"${query.generation}"` } };
  const save = useMutation({
    mutationFn: ({ sql, beside }: { sql: string; beside: boolean }) =>
      beside
        ? dataOf(api.POST("/v1/queries/{query}:replace", { params: given, body: { sql } }))
        : dataOf(api.PATCH("/v1/queries/{query}", { params: given, body: { sql } })),
    onSuccess: () => {
      void client.invalidateQueries();
      close();
    },
  });
  const refused = save.error && save.variables.sql === text ? asApiError(save.error) : null;
  const ready = change !== undefined && change.class !== "refused";
  return (
    <Stack gap="sm">
      <CheckedText noun="statement" text={text} change={setText} checked={checked} refused={refused} />
      {change && <Consequence change={change} />}
      {save.error && <Problem error={save.error} title="The query was not changed" />}
      <Group>
        <Button
          size="xs"
          disabled={!ready}
          loading={save.isPending}
          onClick={() => save.mutate({ sql: text, beside: false })}
        >
          Apply
        </Button>
        <Button
          size="xs"
          variant="default"
          disabled={!ready || save.isPending}
          title="The present version runs until the next one has caught up."
          onClick={() => save.mutate({ sql: text, beside: true })}
        >
          Start beside it
        </Button>
        <Button size="xs" variant="default" onClick={close}>
          Cancel
        </Button>
      </Group>
      {changed && (
        <AsCode
          forms={{
            curl: `${curl("PATCH", pathOf("queries", query.name), { sql: text })}
# Beside it, to take over when it has caught up:
${curl("POST", `${pathOf("queries", query.name)}:replace`, { sql: text })}`,
            leat: `# The statement is in query.sql. The next version takes over when it has caught up.
leat query replace ${shell(quoted(query.name))} query.sql`,
          }}
        />
      )}
    </Stack>
  );
}

/** What a statement without a fault would change. */
function changeOf(checked: Checked): Change | undefined {
  if (checked.state !== "checked" || checked.faults.length > 0) return undefined;
  const plan = checked.statements[0]?.plan;
  return plan && "change" in plan ? ((plan.change as Change | null | undefined) ?? undefined) : undefined;
}

/** What the new statement does to the job, in words; the loss of state stands out. */
function Consequence({ change }: { change: Change }): ReactNode {
  const loses = change.class === "new-state" || change.class === "refused";
  return (
    <Alert
      className={loses ? "problem" : undefined}
      variant="default"
      role="status"
      title={MEANINGS[change.class] ?? change.class}
    >
      <Text size="sm">{`${change.class}: ${change.reason}`}</Text>
    </Alert>
  );
}
