import type { ReactNode } from "react";

const TONES: Record<string, string> = {
  running: "ok",
  ready: "ok",
  completed: "ok",
  failed: "bad",
  errored: "bad",
  lost: "bad",
  pending: "wait",
  starting: "wait",
  stopping: "wait",
  behind: "wait",
  live: "ok",
  connecting: "wait",
  warming: "wait",
  leaving: "wait",
  silent: "bad",
  allowed: "ok",
  denied: "bad",
  enabled: "ok",
  disabled: "rest",
};

/** A state as a coloured dot and its word: colour alone says nothing to some. */
export function State({ state }: { state: string }): ReactNode {
  return (
    <span className="state" data-tone={TONES[state] ?? "rest"}>
      <span className="dot" aria-hidden="true" />
      {state}
    </span>
  );
}
