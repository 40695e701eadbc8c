import type { EditorView } from "@codemirror/view";
import { Autocomplete, Button, Group, Kbd, Tabs, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { api } from "../api/client";
import { parseExact } from "../api/exact";
import { type ApiError, asApiError, type Schemas } from "../api/problem";
import { Faults } from "../parts/Faults";
import { Page } from "../parts/Page";
import { AnyPlanView } from "../parts/Plan";
import { Problem } from "../parts/Problem";
import { CatalogTree } from "../sql/CatalogTree";
import { clearHistory, keepDraft, onOpen, readDraft, readHistory, remember } from "../sql/drafts";
import { Editor, type Selected } from "../sql/Editor";
import { History, Texts } from "../sql/Kept";
import { marksOf } from "../sql/positions";
import { Results } from "../sql/Results";
import { type Checked, useNames, useValidation } from "../sql/validation";

type Answer = Schemas["StatementAnswer"];
type Part = { text: string; from: number };
const CONTEXT = ["database", "schema", "store"] as const;

/** The workspace: write, see what is wrong and how it would run, run it, read the rows. */
export function Sql(): ReactNode {
  const { tab = "plan", ...context } = useSearch({ from: "/inside/sql" });
  const navigate = useNavigate({ from: "/sql" });
  const client = useQueryClient();
  const [text, setText] = useState(readDraft);
  const [past, setPast] = useState(readHistory);
  const [ran, setRan] = useState<Part | null>(null);
  const waiting = useRef<AbortController | null>(null);
  useEffect(
    () =>
      onOpen((opened) => {
        setText(opened);
        // What stood here is in it now.
        setPast(readHistory());
      }),
    [],
  );
  const editor = useRef<EditorView | null>(null);
  const [full, { toggle: toggleFull }] = useDisclosure(false);
  const [tree, { toggle: toggleTree }] = useDisclosure(false);
  const names = useNames();
  const checked = useValidation(text, context);
  const show = (value: string): void => void navigate({ search: (old) => ({ ...old, tab: value }), replace: true });
  const run = useMutation({
    mutationFn: (part: Part) => {
      waiting.current = new AbortController();
      return execute({ sql: part.text, atomic: false, ...context }, waiting.current.signal);
    },
    onMutate: (part) => {
      setRan(part);
      show("results");
    },
    onSuccess: ({ context: after }) => {
      const { database, schema, store } = after;
      void navigate({
        search: (old) => ({
          ...old,
          database: database ?? undefined,
          schema: schema ?? undefined,
          store: store ?? undefined,
        }),
        replace: true,
      });
    },
    onSettled: (_answer, error, part) => {
      remember(part.text, error !== null);
      setPast(readHistory());
      void client.invalidateQueries();
    },
  });
  const start = (selected: Selected | null): void => {
    const part = selected ?? { text, from: 0 };
    if (part.text.trim() !== "" && !run.isPending) run.mutate(part);
  };
  const failure = run.error === null ? null : asApiError(run.error);
  // What has been run would mostly fail a second time: that is no fault of the text.
  const done = run.isSuccess && ran?.text === text;
  const marks = useMemo(() => {
    if (done) return [];
    const found = checked.state === "checked" ? marksOf(checked.faults, checked.text) : [];
    // Until the next check, what the run has said of the same text.
    if (failure && failure.status < 500 && ran && found.length === 0 && text.includes(ran.text))
      return marksOf(failure.faults, ran.text, ran.from);
    return found;
  }, [checked, done, failure, ran, text]);
  return (
    <div className={full ? "full" : undefined}>
      <Page title="SQL" actions={<RunButton running={run.isPending} run={() => start(null)} />}>
        <Group gap="xs">
          {CONTEXT.map((noun) => (
            <Autocomplete
              key={noun}
              size="xs"
              w={170}
              aria-label={`Current ${noun}`}
              placeholder={noun}
              data={names[noun]}
              value={context[noun] ?? ""}
              onChange={(value) =>
                void navigate({ search: (old) => ({ ...old, [noun]: value || undefined }), replace: true })
              }
            />
          ))}
          {done ? <Text size="sm">It has been run.</Text> : <Verdict checked={checked} />}
          <Group gap="xs" ml="auto">
            <Button size="compact-sm" variant="default" aria-pressed={tree} onClick={toggleTree}>
              Catalog
            </Button>
            <Button size="compact-sm" variant="default" aria-pressed={full} onClick={toggleFull}>
              Full screen
            </Button>
          </Group>
        </Group>
        <div className="beside">
          {tree && <CatalogTree insert={(name) => insert(editor.current, name)} />}
          <Editor
            text={text}
            marks={marks}
            relations={names.relations}
            onChange={(value) => {
              setText(value);
              keepDraft(value);
            }}
            onRun={start}
            editor={editor}
          />
        </div>
        <Tabs value={tab} onChange={(value) => show(value ?? "plan")} keepMounted>
          <Tabs.List mb="sm">
            <Tabs.Tab value="plan">Plan</Tabs.Tab>
            <Tabs.Tab value="results">Results</Tabs.Tab>
            <Tabs.Tab value="history">History</Tabs.Tab>
            <Tabs.Tab value="saved">Saved</Tabs.Tab>
          </Tabs.List>
          <Tabs.Panel value="plan">
            <Plans checked={checked} />
          </Tabs.Panel>
          <Tabs.Panel value="results">
            <Outcome
              answer={run.data}
              failure={failure}
              running={run.isPending}
              at={run.submittedAt}
              stop={() => waiting.current?.abort()}
            />
          </Tabs.Panel>
          <Tabs.Panel value="history">
            <History
              past={past}
              choose={setText}
              clear={() => {
                clearHistory();
                setPast([]);
              }}
            />
          </Tabs.Panel>
          <Tabs.Panel value="saved">
            <Texts text={text} choose={setText} />
          </Tabs.Panel>
        </Tabs>
      </Page>
    </div>
  );
}

/** Put a name where the cursor is, and go on writing. */
function insert(editor: EditorView | null, name: string): void {
  if (editor === null) return;
  editor.dispatch(editor.state.replaceSelection(name), { scrollIntoView: true });
  editor.focus();
}

async function execute(body: Schemas["StatementBody"], signal: AbortSignal): Promise<Answer> {
  const answer = await api.POST("/v1/statements", { body, signal, parseAs: "text" });
  return parseExact(answer.data as unknown as string) as Answer;
}

function RunButton({ running, run }: { running: boolean; run: () => void }): ReactNode {
  return (
    <>
      <Text size="xs" c="dimmed" visibleFrom="sm">
        <Kbd size="xs">Ctrl</Kbd> <Kbd size="xs">Enter</Kbd> runs all, or what is selected
      </Text>
      <Button size="xs" onClick={run} loading={running}>
        Run
      </Button>
    </>
  );
}

function Verdict({ checked }: { checked: Checked }): ReactNode {
  return (
    <Text
      size="sm"
      role="status"
      c={checked.state === "checked" && checked.faults.length > 0 ? "var(--leat-bad)" : "dimmed"}
    >
      {verdict(checked)}
    </Text>
  );
}

function verdict(checked: Checked): string {
  if (checked.state === "empty") return "";
  if (checked.state === "checking") return "Checking…";
  if (checked.state === "failed") return "Not checked: see the plan";
  const count = checked.faults.length;
  return count === 0 ? "No fault found" : count === 1 ? "1 fault" : `${count} faults`;
}

function Plans({ checked }: { checked: Checked }): ReactNode {
  if (checked.state === "empty")
    return <Text size="sm">Write a statement: its plan appears here before it runs.</Text>;
  if (checked.state === "failed") return <Problem error={checked.error} title="The text could not be checked" />;
  return (
    <>
      {checked.faults.length > 0 && <Faults faults={checked.faults} />}
      {checked.statements.map((statement, index) =>
        statement.plan ? (
          <div key={index}>
            <Text fw={600} size="sm" mt="xs" mb={4}>
              {`${index + 1}. ${statement.kind.replaceAll("_", " ")}`}
            </Text>
            <AnyPlanView plan={statement.plan} />
          </div>
        ) : null,
      )}
    </>
  );
}

type OutcomeProps = {
  answer: Answer | undefined;
  failure: ApiError | null;
  running: boolean;
  at: number;
  stop: () => void;
};

function Outcome({ answer, failure, running, at, stop }: OutcomeProps): ReactNode {
  if (running) {
    return (
      <Group gap="sm">
        <Text size="sm" role="status">
          Running…
        </Text>
        <Button size="compact-xs" variant="default" onClick={stop}>
          Stop waiting
        </Button>
      </Group>
    );
  }
  if (failure) {
    return (
      <>
        <Results results={failure.results} />
        <Problem error={failure} />
      </>
    );
  }
  if (answer) return <Results key={at} results={answer.results} />;
  return <Text size="sm">Run a statement to see what it does.</Text>;
}
