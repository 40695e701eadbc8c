import { useSyncExternalStore } from "react";
import type { Schemas } from "../api/problem";
import { ApiError, asApiError } from "../api/problem";
import { readLines } from "../api/stream";

export type Change = Schemas["ChangeView"];
export type FeedState = "off" | "live" | "lost";
type Line = Partial<Omit<Change, "error">> & {
  position?: string;
  reset?: { reason: string };
  error?: string | null | { code: string; detail: string };
};
export type Taken = { change?: Change; reset?: boolean };

const KEPT = 50;
const [FIRST_MS, LONGEST_MS] = [1_000, 30_000];

// One feed for the tab, however many pages look at it.
let items: readonly Change[] = [];
let state: FeedState = "off";
let position: string | undefined;
const listeners = new Set<() => void>();

function tell(): void {
  for (const listener of listeners) listener();
}

function setState(next: FeedState): void {
  if (state !== next) {
    state = next;
    tell();
  }
}

function onChange(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The newest changes that this tab has heard of, the newest first. */
export function useChanges(): readonly Change[] {
  return useSyncExternalStore(onChange, () => items);
}

/** Whether changes arrive by themselves now. */
export function useFeedState(): FeedState {
  return useSyncExternalStore(onChange, () => state);
}

/** Forget everything: another account may sign in. */
export function forgetFeed(): void {
  items = [];
  position = undefined;
  setState("off");
  tell();
}

/**
 * Follow the server's changes until `signal` ends it. A stream that ends or breaks is opened again behind the last
 * position, later and later while nobody answers.
 */
export async function followFeed(signal: AbortSignal, take: (taken: Taken) => void): Promise<void> {
  let pause = FIRST_MS;
  while (!signal.aborted) {
    try {
      for await (const line of readLines(pathOf(position), signal)) {
        if (signal.aborted) return;
        takeLine(JSON.parse(line) as Line, take);
        // Only now: a server that answers with an error alone is asked later and later too.
        pause = FIRST_MS;
        setState("live");
      }
      if (signal.aborted) return;
      pause = FIRST_MS;
    } catch (thrown) {
      if (signal.aborted) return;
      setState("lost");
      // The page leaves for the sign-in.
      if (asApiError(thrown).status === 401) return;
    }
    await sleep(pause * (0.75 + Math.random() / 2), signal);
    pause = Math.min(pause * 2, LONGEST_MS);
  }
}

function pathOf(after: string | undefined): string {
  return `/v1/events?${after === undefined ? `tail=${KEPT}` : `after=${after}`}`;
}

function takeLine(line: Line, take: (taken: Taken) => void): void {
  if (typeof line.error === "object" && line.error !== null)
    throw new ApiError(line.error.code, 0, line.error.detail);
  // What came first with `tail` was there before the pages were read.
  const isNew = position !== undefined;
  if (line.reset !== undefined) take({ reset: true });
  if (line.id !== undefined) {
    const change = line as Change;
    // A stream that broke before its first position is read from the beginning again.
    items = [change, ...items.filter(({ id }) => id !== change.id)].slice(0, KEPT);
    tell();
    if (isNew) {
      position = change.id;
      take({ change });
    }
  } else if (line.position !== undefined) position = line.position;
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms);
    function done(): void {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    }
    signal.addEventListener("abort", done);
  });
}
