import { Text } from "@mantine/core";
import { lazy, type ReactNode, Suspense, useMemo } from "react";
import type { ApiError, FaultView } from "../api/problem";
import { Faults } from "../parts/Faults";
import { Problem } from "../parts/Problem";
import { Waiting } from "../parts/Rows";
import { marksOf } from "./positions";
import { type Checked, useNames } from "./validation";

const Editor = lazy(() => import("./Editor").then(({ Editor: one }) => ({ default: one })));
const NONE: readonly FaultView[] = [];
type Props = {
  noun: string;
  text: string;
  change: (text: string) => void;
  checked: Checked;
  /** What the server said when this text was sent. */
  refused: ApiError | null;
};

/** An editor for the SQL of an object, with what the server says of it below. */
export function CheckedText({ noun, text, change, checked, refused }: Props): ReactNode {
  const { relations } = useNames();
  const faults = checked.state === "checked" ? checked.faults : (refused?.faults ?? NONE);
  const marks = useMemo(() => marksOf(faults, text), [faults, text]);
  return (
    <>
      <Suspense fallback={<Waiting />}>
        <Editor text={text} marks={marks} relations={relations} onChange={change} onRun={() => undefined} />
      </Suspense>
      {checked.state === "checked" && faults.length > 0 && <Faults faults={faults} />}
      {checked.state === "checking" && (
        <Text size="sm" role="status">
          Checking…
        </Text>
      )}
      {checked.state === "failed" && <Problem error={checked.error} title={`The ${noun} could not be checked`} />}
    </>
  );
}
