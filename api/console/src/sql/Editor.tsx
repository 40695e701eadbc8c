import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { sql } from "@codemirror/lang-sql";
import { bracketMatching, HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { type Diagnostic, lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers, placeholder } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { type ReactNode, useEffect, useRef } from "react";
import { dialect, FUNCTIONS } from "./dialect";

export type Selected = { text: string; from: number };
type Props = {
  text: string;
  marks: readonly Diagnostic[];
  relations: readonly string[];
  onChange: (text: string) => void;
  onRun: (selected: Selected | null) => void;
};

const colours = EditorView.theme({
  "&": { fontSize: "0.87rem", height: "30vh", minHeight: "170px", color: "var(--mantine-color-text)" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mantine-font-family-monospace)", overflow: "auto" },
  ".cm-content": { caretColor: "var(--mantine-color-text)" },
  ".cm-cursor": { borderLeftColor: "var(--mantine-color-text)" },
  ".cm-gutters": {
    backgroundColor: "transparent",
    color: "var(--mantine-color-dimmed)",
    borderRight: "1px solid var(--mantine-color-default-border)",
  },
  ".cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--mantine-color-default-hover) 60%, transparent)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "color-mix(in srgb, var(--mantine-color-anchor) 30%, transparent)",
  },
  ".cm-placeholder": { color: "var(--mantine-color-placeholder)" },
  ".cm-tooltip": {
    backgroundColor: "var(--mantine-color-body)",
    color: "var(--mantine-color-text)",
    border: "1px solid var(--mantine-color-default-border)",
  },
  ".cm-diagnostic": { whiteSpace: "pre-wrap", maxWidth: "34rem" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": {
    backgroundColor: "var(--mantine-primary-color-filled)",
    color: "var(--mantine-color-white)",
  },
});
const highlighting = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--sql-keyword)", fontWeight: "600" },
  { tag: [tags.typeName, tags.standard(tags.name)], color: "var(--sql-name)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--sql-string)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--sql-number)" },
  { tag: tags.comment, color: "var(--mantine-color-dimmed)", fontStyle: "italic" },
]);

/** The SQL editor. Escape, then Tab leaves it by keyboard. */
export function Editor(props: Props): ReactNode {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const latest = useRef(props);
  latest.current = props;

  useEffect(() => {
    if (place.current === null) return;
    const made = new EditorView({
      parent: place.current,
      state: EditorState.create({ doc: latest.current.text, extensions: extensions(latest) }),
    });
    view.current = made;
    made.focus();
    return () => made.destroy();
  }, []);
  useEffect(() => {
    const editor = view.current;
    if (editor === null || editor.state.doc.toString() === props.text) return;
    editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: props.text } });
  }, [props.text]);
  useEffect(() => {
    const editor = view.current;
    if (editor === null) return;
    const length = editor.state.doc.length;
    // The text may have changed since it was checked.
    const fitting = props.marks.filter((mark) => mark.to <= length);
    editor.dispatch(setDiagnostics(editor.state, fitting));
  }, [props.marks]);
  return <div className="editor" ref={place} />;
}

function extensions(latest: { readonly current: Props }) {
  const run = (view: EditorView): boolean => {
    const { from, to } = view.state.selection.main;
    latest.current.onRun(from === to ? null : { text: view.state.sliceDoc(from, to), from });
    return true;
  };
  return [
    lineNumbers(),
    lintGutter(),
    history(),
    drawSelection(),
    highlightActiveLine(),
    bracketMatching(),
    closeBrackets(),
    EditorView.lineWrapping,
    sql({ dialect, upperCaseKeywords: true }),
    dialect.language.data.of({ autocomplete: completeNames(latest) }),
    autocompletion({ maxRenderedOptions: 40 }),
    syntaxHighlighting(highlighting),
    colours,
    placeholder("SELECT … or CREATE STREAM … AS SELECT …"),
    EditorView.contentAttributes.of({ "aria-label": "SQL" }),
    EditorView.updateListener.of((update) => {
      if (update.docChanged) latest.current.onChange(update.state.doc.toString());
    }),
    keymap.of([
      { key: "Mod-Enter", run, preventDefault: true },
      ...closeBracketsKeymap,
      ...completionKeymap,
      ...lintKeymap,
      ...historyKeymap,
      ...defaultKeymap.filter(({ key }) => key !== "Mod-Enter"),
    ]),
  ];
}

function completeNames(latest: { readonly current: Props }) {
  return (context: import("@codemirror/autocomplete").CompletionContext) => {
    const word = context.matchBefore(/[\w.]+/);
    if (word === null && !context.explicit) return null;
    const relations = latest.current.relations.map((label) => ({ label, type: "class", boost: 2 }));
    return { from: word?.from ?? context.pos, options: [...relations, ...FUNCTIONS], validFor: /^[\w.]*$/ };
  };
}
