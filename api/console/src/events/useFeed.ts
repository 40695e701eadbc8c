import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { checkSession } from "../api/session";
import { onTokenChange } from "../api/token";
import { followFeed, forgetFeed, type Taken, useFeedState } from "./feed";
import { touchedBy } from "./touched";

// A change is shown soon; of many that follow each other, a round of requests every now and then.
const [BATCH_MS, BETWEEN_MS] = [300, 2_000];
onTokenChange(forgetFeed);

/** Follow the feed while the tab is visible, and read again what its changes touch. */
export function useFeed(): void {
  const client = useQueryClient();
  useEffect(() => {
    let control: AbortController | undefined;
    const follow = (): void => {
      control?.abort();
      control = undefined;
      if (document.visibilityState === "hidden") return;
      control = new AbortController();
      void followFeed(control.signal, invalidator(client));
    };
    const turn = (): void => {
      follow();
      if (document.visibilityState === "visible") void checkSession();
    };
    follow();
    document.addEventListener("visibilitychange", turn);
    // At once: until the page gives way to the sign-in, lines for the old account would still arrive.
    const stopWatching = onTokenChange(() => control?.abort());
    return () => {
      document.removeEventListener("visibilitychange", turn);
      stopWatching();
      control?.abort();
    };
  }, [client]);
}

/** Many changes at once are one round of requests: of all that is shown, only what they touch. */
function invalidator(client: QueryClient): (taken: Taken) => void {
  const waiting = new Map<string, readonly unknown[]>();
  let flushed = 0;
  const flush = (): void => {
    flushed = Date.now();
    const keys = [...waiting.values()];
    waiting.clear();
    for (const queryKey of keys) void client.invalidateQueries({ queryKey });
  };
  return ({ change, reset }) => {
    // An empty key is the beginning of all.
    const keys = reset ? [[]] : change ? touchedBy(change) : [];
    if (waiting.size === 0 && keys.length > 0) {
      setTimeout(flush, Math.max(BATCH_MS, flushed + BETWEEN_MS - Date.now()));
    }
    for (const key of keys) waiting.set(JSON.stringify(key), key);
  };
}

// Figures of jobs are no changes and still have to be asked for; the rest comes by itself.
const [FIGURES_MS, REST_MS] = [15_000, 120_000];

/**
 * How often a page asks again: often without the feed, seldom with it. Hidden tabs never ask.
 *
 * With `figures` what is asked for holds figures of jobs, which change all the time.
 */
export function usePoll(often: number, figures = false): number {
  const live = useFeedState() === "live";
  return live ? Math.max(often, figures ? FIGURES_MS : REST_MS) : often;
}
