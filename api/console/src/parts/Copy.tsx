import { Button } from "@mantine/core";
import { type ReactNode, useEffect, useState } from "react";
import { copy } from "./clipboard";

/** A button that copies a text and says so. */
export function Copy({ text, label = "Copy" }: { text: string; label?: string }): ReactNode {
  const [said, setSaid] = useState<string>();
  useEffect(() => {
    const timer = setTimeout(() => setSaid(undefined), 2_000);
    return () => clearTimeout(timer);
  }, [said]);
  return (
    <Button
      size="compact-sm"
      variant="default"
      aria-live="polite"
      onClick={() => void copy(text).then((done) => setSaid(done ? "Copied" : "Select and copy it"))}
    >
      {said ?? label}
    </Button>
  );
}
