import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { bracketMatching, HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { type Diagnostic, lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { EditorState, type Extension } from "@codemirror/state";
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  type KeyBinding,
  keymap,
  lineNumbers,
  placeholder,
} from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { type ReactNode, type RefObject, useEffect, useRef } from "react";

type Props = {
  /** For those who hear the field only. */
  label: string;
  text: string;
  marks: readonly Diagnostic[];
  onChange: (text: string) => void;
  /** Read once, when the editor appears, as are the others below. */
  language: Extension;
  keys?: readonly KeyBinding[];
  hint?: string;
  focus?: boolean;
  /** Receives the editor, to insert into it. */
  editor?: RefObject<EditorView | null>;
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
  { tag: [tags.keyword, tags.operatorKeyword], color: "var(--sql-keyword)", fontWeight: "600" },
  { tag: [tags.typeName, tags.standard(tags.name)], color: "var(--sql-name)" },
  {
    tag: [tags.definition(tags.className), tags.function(tags.definition(tags.variableName))],
    color: "var(--sql-name)",
  },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--sql-string)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--sql-number)" },
  { tag: tags.comment, color: "var(--mantine-color-dimmed)", fontStyle: "italic" },
]);

/** An editor of code with marked faults. Escape, then Tab leaves it by keyboard. */
export function CodeEditor(props: Props): ReactNode {
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
    const outer = latest.current.editor;
    if (outer) outer.current = made;
    if (latest.current.focus) made.focus();
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

function extensions(latest: { readonly current: Props }): Extension[] {
  const { label, language, keys = [], hint } = latest.current;
  const own = keys.map(({ key }) => key);
  return [
    lineNumbers(),
    lintGutter(),
    history(),
    drawSelection(),
    highlightActiveLine(),
    bracketMatching(),
    closeBrackets(),
    EditorView.lineWrapping,
    language,
    autocompletion({ maxRenderedOptions: 40 }),
    syntaxHighlighting(highlighting),
    colours,
    ...(hint === undefined ? [] : [placeholder(hint)]),
    EditorView.contentAttributes.of({ "aria-label": label }),
    EditorView.updateListener.of((update) => {
      if (update.docChanged) latest.current.onChange(update.state.doc.toString());
    }),
    keymap.of([
      ...keys,
      ...closeBracketsKeymap,
      ...completionKeymap,
      ...lintKeymap,
      ...historyKeymap,
      ...defaultKeymap.filter(({ key }) => !own.includes(key)),
    ]),
  ];
}
