import { indentWithTab } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { indentUnit } from "@codemirror/language";
import type { Diagnostic } from "@codemirror/lint";
import type { ReactNode } from "react";
import { CodeEditor } from "../parts/CodeEditor";

const LANGUAGE = [python(), indentUnit.of("    ")];
const KEYS = [indentWithTab];

type Props = { text: string; marks: readonly Diagnostic[]; onChange: (text: string) => void };

/** An editor of Python. Tab indents; Escape, then Tab leaves it. */
export default function PythonEditor(props: Props): ReactNode {
  return <CodeEditor {...props} label="Python code" language={LANGUAGE} keys={KEYS} />;
}
