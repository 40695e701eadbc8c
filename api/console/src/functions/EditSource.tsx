import { Button, Checkbox, Group, Stack } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type ReactNode, useMemo, useState } from "react";
import { api, dataOf } from "../api/client";
import { sqlText } from "../api/code";
import { quoted } from "../api/names";
import { asApiError, type Schemas } from "../api/problem";
import { AsCode } from "../parts/AsCode";
import { Faults } from "../parts/Faults";
import { Problem } from "../parts/Problem";
import { useValidation } from "../sql/validation";
import { sourceForms } from "./code";
import { lineMark } from "./faults";
import PythonEditor from "./PythonEditor";

type Props = { source: Schemas["FunctionSourceView"]; close: () => void; done: () => void };

/** Gives a source new code. Its functions keep their signatures. */
export default function EditSource({ source: newest, close, done }: Props): ReactNode {
  // The page reads the source again meanwhile; with the newest generation it would overwrite what others changed.
  const [source] = useState(newest);
  const [code, setCode] = useState(source.content);
  const [restart, setRestart] = useState(true);
  const name = quoted(source.name);
  const changed = code !== source.content;
  const check = `CREATE OR REPLACE FUNCTION_SOURCE ${name} WITH ('file' = ${sqlText(source.file)}, 'content' = ${sqlText(code)});`;
  const checked = useValidation(changed ? check : "", {});
  const save = useMutation({
    mutationFn: (content: string) =>
      dataOf(
        api.PUT("/v1/function-sources/{function_source}", {
          // What somebody else has changed meanwhile is not overwritten.
          params: { path: { function_source: name }, header: { "If-Match": `"${source.generation}"` } },
          body: { file: source.file, content, comment: source.comment, restart_queries: restart },
        }),
      ),
    onSuccess: () => {
      done();
      close();
    },
  });
  const refused = save.error && save.variables === code ? asApiError(save.error) : null;
  const faults = refused?.faults ?? (checked.state === "checked" ? checked.faults : []);
  const marks = useMemo(
    () =>
      faults.flatMap(({ detail, hint }) => lineMark(detail, [detail, hint].filter(Boolean).join(" "), code) ?? []),
    [faults, code],
  );
  return (
    <Stack gap="sm">
      <PythonEditor text={code} marks={marks} onChange={setCode} />
      {!refused && faults.length > 0 && <Faults faults={faults} places={false} />}
      {checked.state === "failed" && <Problem error={checked.error} title="The code could not be checked" />}
      {save.error && <Problem error={save.error} title="The code was not changed" />}
      <Checkbox
        label="Restart the running queries that call its functions"
        description="From their checkpoints. Otherwise they keep the old code until they are restarted."
        checked={restart}
        onChange={(event) => setRestart(event.currentTarget.checked)}
      />
      <Group>
        <Button size="xs" disabled={!changed} loading={save.isPending} onClick={() => save.mutate(code)}>
          Save the code
        </Button>
        <Button size="xs" variant="default" onClick={close}>
          Cancel
        </Button>
      </Group>
      {changed && <AsCode forms={sourceForms(source, code, restart)} />}
    </Stack>
  );
}
