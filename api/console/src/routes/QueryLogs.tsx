import { Group, Text, TextInput } from "@mantine/core";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { useLog } from "../api/logs";
import { Problem } from "../parts/Problem";
import { Waiting } from "../parts/Rows";
import { State } from "../parts/State";

// Nearer to the end than this, the view follows new lines.
const NEAR = 40;

/** The log of the query's job as it is written, with a filter. */
export function Logs({ query }: { query: string }): ReactNode {
  const { lines, state, error } = useLog(query);
  const [q, setQ] = useState("");
  const place = useRef<HTMLElement>(null);
  const follows = useRef(true);
  const wanted = q.trim().toLowerCase();
  const shown = wanted === "" ? lines : lines.filter(({ text }) => text.toLowerCase().includes(wanted));
  const last = shown.at(-1)?.number;
  useEffect(() => {
    if (place.current && follows.current) place.current.scrollTop = place.current.scrollHeight;
  }, [last]);
  if (error) return <Problem error={error} />;
  if (state === "connecting" && lines.length === 0) return <Waiting />;
  return (
    <>
      <Group gap="sm" mb="xs">
        <TextInput
          size="xs"
          w={260}
          aria-label="Filter lines"
          placeholder="Filter lines"
          value={q}
          onChange={(event) => setQ(event.currentTarget.value)}
        />
        <State state={state} />
        <Text size="sm" c="dimmed" role="status">
          {wanted === "" ? `${lines.length} lines` : `${shown.length} of ${lines.length} lines`}
        </Text>
      </Group>
      {lines.length === 0 ? (
        <Text size="sm">The job has written no line yet.</Text>
      ) : (
        <section
          className="source log"
          aria-label="Log"
          tabIndex={0}
          ref={place}
          onScroll={({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) => {
            follows.current = scrollHeight - scrollTop - clientHeight < NEAR;
          }}
        >
          <pre>{shown.map(({ text }) => text).join("\n")}</pre>
        </section>
      )}
    </>
  );
}
