import { useEffect, useState } from "react";
import { type ApiError, asApiError } from "./problem";
import { readLines } from "./stream";

type LogLine = { number: number; text: string };
export type Log = { lines: readonly LogLine[]; state: "connecting" | "live" | "lost"; error: ApiError | null };

const [TAIL, KEPT] = [200, 2_000];
const [FLUSH_MS, AGAIN_MS] = [200, 3_000];
const START: Log = { lines: [], state: "connecting", error: null };

/** The log of a query's job as it is written, while the tab is visible. The newest lines are kept. */
export function useLog(query: string): Log {
  const [log, setLog] = useState<Log>(START);
  useEffect(() => {
    let control: AbortController | undefined;
    const follow = (): void => {
      control?.abort();
      if (document.visibilityState === "hidden") return;
      control = new AbortController();
      void read(query, control.signal, setLog);
    };
    setLog(START);
    follow();
    document.addEventListener("visibilitychange", follow);
    return () => {
      document.removeEventListener("visibilitychange", follow);
      control?.abort();
    };
  }, [query]);
  return log;
}

async function read(query: string, signal: AbortSignal, show: (log: Log) => void): Promise<void> {
  const path = `/v1/queries/${encodeURIComponent(query)}/logs:follow?tail=${TAIL}`;
  while (!signal.aborted) {
    // Each connection begins with the last lines again.
    const lines: LogLine[] = [];
    let [open, count, shown] = [false, 0, -1];
    const flush = (state: Log["state"], error: ApiError | null = null): void => {
      if (!signal.aborted) show({ lines: [...lines], state, error });
    };
    const timer = setInterval(() => {
      if (!open || shown === count) return;
      shown = count;
      flush("live");
    }, FLUSH_MS);
    let error: ApiError | null = null;
    try {
      for await (const line of readLines(path, signal)) {
        open = true;
        const found = /^data: (.*)$/.exec(line)?.[1];
        const { line: text } = (found === undefined ? {} : JSON.parse(found)) as { line?: string };
        if (text === undefined) continue;
        count += 1;
        lines.push({ number: count, text });
        if (lines.length > KEPT) lines.splice(0, lines.length - KEPT);
      }
    } catch (thrown) {
      error = asApiError(thrown);
    }
    clearInterval(timer);
    if (signal.aborted) return;
    flush("lost", error);
    if (error !== null && error.status >= 400 && error.status < 500 && error.status !== 429) return;
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
}
