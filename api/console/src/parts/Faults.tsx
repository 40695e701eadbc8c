import { Text } from "@mantine/core";
import type { ReactNode } from "react";
import type { FaultView } from "../api/problem";

/** What is wrong with a text, each with its place where that means something to the reader. */
export function Faults({
  faults,
  places = true,
}: {
  faults: readonly Partial<FaultView>[];
  places?: boolean;
}): ReactNode {
  return (
    <ul className="faults">
      {faults.map((fault) => (
        <li key={`${fault.detail} ${fault.position?.offset ?? ""}`}>
          {places && fault.position && (
            <Text span size="sm" c="dimmed">{`${fault.position.line}:${fault.position.column} `}</Text>
          )}
          {fault.detail} {fault.hint && <strong>{fault.hint}</strong>}
        </li>
      ))}
    </ul>
  );
}
