import type { CompletionContext } from "@codemirror/autocomplete";
import { sql } from "@codemirror/lang-sql";
import type { Diagnostic } from "@codemirror/lint";
import type { EditorView } from "@codemirror/view";
import { type ReactNode, type RefObject, useMemo, useRef } from "react";
import { CodeEditor } from "../parts/CodeEditor";
import { dialect, FUNCTIONS } from "./dialect";

export type Selected = { text: string; from: number };
type Props = {
  text: string;
  marks: readonly Diagnostic[];
  relations: readonly string[];
  onChange: (text: string) => void;
  onRun: (selected: Selected | null) => void;
  editor?: RefObject<EditorView | null>;
};

/** The SQL editor. */
export function Editor(props: Props): ReactNode {
  const latest = useRef(props);
  latest.current = props;
  const language = useMemo(
    () => [
      sql({ dialect, upperCaseKeywords: true }),
      dialect.language.data.of({ autocomplete: completeNames(latest) }),
    ],
    [],
  );
  const run = (view: EditorView): boolean => {
    const { from, to } = view.state.selection.main;
    latest.current.onRun(from === to ? null : { text: view.state.sliceDoc(from, to), from });
    return true;
  };
  return (
    <CodeEditor
      label="SQL"
      text={props.text}
      marks={props.marks}
      onChange={props.onChange}
      language={language}
      keys={[{ key: "Mod-Enter", run, preventDefault: true }]}
      hint="SELECT … or CREATE STREAM … AS SELECT …"
      focus
      {...(props.editor ? { editor: props.editor } : {})}
    />
  );
}

function completeNames(latest: { readonly current: Props }) {
  return (context: CompletionContext) => {
    const word = context.matchBefore(/[\w.]+/);
    if (word === null && !context.explicit) return null;
    const relations = latest.current.relations.map((label) => ({ label, type: "class", boost: 2 }));
    return { from: word?.from ?? context.pos, options: [...relations, ...FUNCTIONS], validFor: /^[\w.]*$/ };
  };
}
