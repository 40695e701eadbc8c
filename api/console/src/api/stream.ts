import { useCallback, useEffect, useRef, useState } from "react";
import { noteRefusal } from "./client";
import { parseExact } from "./exact";
import { span } from "./figures";
import { patientFetch } from "./patience";
import { ApiError, asApiError, errorOf, type FaultView } from "./problem";
import { callerHeaders } from "./session";

/** The lines of a streamed answer (NDJSON), as they come. */
export async function* readLines(
  path: string,
  signal: AbortSignal,
  opened?: (date: string | null) => void,
): AsyncGenerator<string> {
  const headers = callerHeaders();
  const init = { headers: { ...headers, Accept: "application/x-ndjson" }, signal };
  const response = await patientFetch(new Request(path, init));
  if (!response.ok || response.body === null) {
    noteRefusal(response.status, headers.Authorization ?? null);
    throw await errorOf(response);
  }
  opened?.(response.headers.get("Date"));
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
  /** What is to be known of a time in which the tab was hidden. */
  gap: string;
  error: ApiError | null;
  start: (path: string, resumed?: Resumed<T>) => void;
  cancel: () => void;
};
export type Numbered<T> = { number: number; item: T };

/** How a stream continues that a hidden tab has closed. */
export type Resumed<T> = {
  /** Whether the stream can go on behind what was read; else it stays open. */
  can: () => boolean;
  /** Notes an item; false of one that was there already. */
  isNew: (item: T) => boolean;
  /** What is asked for then, by the server's time at which the stream was opened first. */
  path: (opened: string) => string;
};

const FLUSH_MS = 120;

/**
 * Follow a streamed answer, keeping the newest items only.
 *
 * While `paused`, items still arrive and are counted, but the shown ones stay. While the tab is hidden, a stream
 * that can be resumed is closed.
 */
export function useStream<T>(keep: number, paused = false): Stream<T> {
  const [shown, setShown] = useState<{ items: readonly Numbered<T>[]; total: number }>({ items: [], total: 0 });
  const [state, setState] = useState<StreamState>("idle");
  const [note, setNote] = useState("");
  const [gap, setGap] = useState("");
  const [error, setError] = useState<ApiError | null>(null);
  const buffer = useRef<Numbered<T>[]>([]);
  const total = useRef(0);
  const control = useRef<AbortController | null>(null);
  const turn = useRef<(() => void) | null>(null);

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
    turn.current = null;
    setState((old) => (old === "running" ? "cancelled" : old));
  }, []);

  const start = useCallback(
    (path: string, resumed?: Resumed<T>) => {
      control.current?.abort();
      // By the clock of the browser until the server has answered.
      const begun = new Date().toISOString();
      let [opened, hidden]: [string | undefined, number | undefined] = [undefined, undefined];
      buffer.current = [];
      total.current = 0;
      setState("running");
      setNote("");
      setGap("");
      setError(null);
      setShown({ items: [], total: 0 });
      const take = (line: Line): void => {
        if (line.waits !== undefined) setNote(line.waits);
        else if (line.end !== undefined) setNote(line.end.reason);
        else if (line.error?.detail !== undefined) throw streamed(line.error);
        else if (resumed?.isNew(line as T) !== false) {
          if (total.current === 0) setNote("");
          total.current += 1;
          buffer.current.push({ number: total.current, item: line as T });
          if (buffer.current.length > keep) buffer.current.splice(0, buffer.current.length - keep);
        }
      };
      const open = (at: string): void => {
        const mine = new AbortController();
        control.current = mine;
        const end = (next: StreamState): void => {
          if (mine.signal.aborted) return;
          turn.current = null;
          setState(next);
        };
        const note = (date: string | null): void => {
          opened ??= new Date(date ?? Date.now()).toISOString();
        };
        void follow(at, mine.signal, take, note).then(
          () => end("ended"),
          (thrown: unknown) => {
            if (!mine.signal.aborted) setError(asApiError(thrown));
            end("failed");
          },
        );
      };
      turn.current = () => {
        if (document.visibilityState === "hidden") {
          if (!resumed?.can()) return;
          hidden ??= Date.now();
          control.current?.abort();
        } else if (hidden !== undefined) {
          setGap(`continued after ${span((Date.now() - hidden) / 1_000)} in which the tab was hidden`);
          hidden = undefined;
          open(resumed ? resumed.path(opened ?? begun) : path);
        }
      };
      open(path);
      turn.current();
    },
    [keep],
  );

  useEffect(() => {
    if (state === "idle") return;
    flush();
    if (state !== "running") return;
    const timer = setInterval(() => {
      flush();
      // Whether the stream can be resumed may only be known now.
      turn.current?.();
    }, FLUSH_MS);
    return () => clearInterval(timer);
  }, [state, flush]);
  useEffect(() => {
    const onTurn = (): void => turn.current?.();
    document.addEventListener("visibilitychange", onTurn);
    return () => {
      document.removeEventListener("visibilitychange", onTurn);
      control.current?.abort();
    };
  }, []);
  return { ...shown, state, note, gap, error, start, cancel };
}

async function follow(
  path: string,
  signal: AbortSignal,
  take: (line: Line) => void,
  opened: (date: string | null) => void,
): Promise<void> {
  for await (const line of readLines(path, signal, opened)) {
    if (signal.aborted) return;
    take(parseExact(line) as Line);
  }
}

function streamed(error: NonNullable<Line["error"]>): ApiError {
  return new ApiError(error.code, 0, error.detail, error.errors ?? []);
}
