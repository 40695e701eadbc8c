import { useCallback, useEffect, useRef, useState } from "react";
import { noteRefusal } from "./client";
import { parseExact } from "./exact";
import { patientFetch } from "./patience";
import { ApiError, asApiError, errorOf, type FaultView } from "./problem";
import { callerHeaders } from "./session";

/** The lines of a streamed answer (NDJSON), as they come. */
export async function* readLines(path: string, signal: AbortSignal): AsyncGenerator<string> {
  const headers = callerHeaders();
  const init = { headers: { ...headers, Accept: "application/x-ndjson" }, signal };
  const response = await patientFetch(new Request(path, init));
  if (!response.ok || response.body === null) {
    noteRefusal(response.status, headers.Authorization ?? null);
    throw await errorOf(response);
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    const parts = (rest + value).split("\n");
    rest = parts.pop() ?? "";
    for (const part of parts) if (part !== "") yield part;
  }
  if (rest !== "") yield rest;
}

type Line = {
  waits?: string;
  end?: { reason: string };
  error?: { code: string; detail: string; errors?: FaultView[] };
};

export type StreamState = "idle" | "running" | "ended" | "cancelled" | "failed";
export type Stream<T> = {
  items: readonly Numbered<T>[];
  total: number;
  state: StreamState;
  note: string;
  error: ApiError | null;
  start: (path: string) => void;
  cancel: () => void;
};
export type Numbered<T> = { number: number; item: T };

const FLUSH_MS = 120;

/**
 * Follow a streamed answer, keeping the newest items only.
 *
 * While `paused`, items still arrive and are counted, but the shown ones stay.
 */
export function useStream<T>(keep: number, paused = false): Stream<T> {
  const [shown, setShown] = useState<{ items: readonly Numbered<T>[]; total: number }>({ items: [], total: 0 });
  const [state, setState] = useState<StreamState>("idle");
  const [note, setNote] = useState("");
  const [error, setError] = useState<ApiError | null>(null);
  const buffer = useRef<Numbered<T>[]>([]);
  const total = useRef(0);
  const control = useRef<AbortController | null>(null);

  const flush = useCallback(() => {
    setShown((old) => {
      const items = paused ? old.items : [...buffer.current];
      return old.total === total.current && old.items.length === items.length && items.at(-1) === old.items.at(-1)
        ? old
        : { items, total: total.current };
    });
  }, [paused]);

  const cancel = useCallback(() => {
    control.current?.abort();
    control.current = null;
    setState((old) => (old === "running" ? "cancelled" : old));
  }, []);

  const start = useCallback(
    (path: string) => {
      control.current?.abort();
      const mine = new AbortController();
      control.current = mine;
      buffer.current = [];
      total.current = 0;
      setState("running");
      setNote("");
      setError(null);
      setShown({ items: [], total: 0 });
      const take = (line: Line): void => {
        if (line.waits !== undefined) setNote(line.waits);
        else if (line.end !== undefined) setNote(line.end.reason);
        else if (line.error?.detail !== undefined) throw streamed(line.error);
        else {
          if (total.current === 0) setNote("");
          total.current += 1;
          buffer.current.push({ number: total.current, item: line as T });
          if (buffer.current.length > keep) buffer.current.splice(0, buffer.current.length - keep);
        }
      };
      void follow(path, mine.signal, take).then(
        () => !mine.signal.aborted && setState("ended"),
        (thrown: unknown) => {
          if (mine.signal.aborted) return;
          setError(asApiError(thrown));
          setState("failed");
        },
      );
    },
    [keep],
  );

  useEffect(() => {
    if (state === "idle") return;
    flush();
    if (state !== "running") return;
    const timer = setInterval(flush, FLUSH_MS);
    return () => clearInterval(timer);
  }, [state, flush]);
  useEffect(() => () => control.current?.abort(), []);
  return { ...shown, state, note, error, start, cancel };
}

async function follow(path: string, signal: AbortSignal, take: (line: Line) => void): Promise<void> {
  for await (const line of readLines(path, signal)) {
    if (signal.aborted) return;
    take(parseExact(line) as Line);
  }
}

function streamed(error: NonNullable<Line["error"]>): ApiError {
  return new ApiError(error.code, 0, error.detail, error.errors ?? []);
}
