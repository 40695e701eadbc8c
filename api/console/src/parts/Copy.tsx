import { Button } from "@mantine/core";
import { type ReactNode, useEffect, useState } from "react";

// The clipboard's own interface exists only where the address is https or this machine.
async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = document.createElement("textarea");
    field.value = text;
    // Within an open dialog: its trap of the focus would take it from elsewhere.
    (document.activeElement?.parentElement ?? document.body).append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done;
  }
}

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
