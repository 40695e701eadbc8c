import type { Schemas } from "./problem";

type QueryView = Schemas["QueryView"];
type Source = { relation?: string; lag?: number | null };
/** What a running query does now; a member is undefined where its job does not report it. */
export type Figures = {
  read: number | undefined;
  written: number | undefined;
  lag: number | undefined;
  /** Seconds since it last got on. */
  age: number | undefined;
  waits: string | undefined;
};
const NONE: Figures = { read: undefined, written: undefined, lag: undefined, age: undefined, waits: undefined };

const known = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isFinite(value) ? value : undefined;

/** The figures of a query; of one that does not run none, since what it reported last is not what happens now. */
export function figuresOf(query: QueryView): Figures {
  const { state, metrics } = query.status;
  if (state !== "running") return NONE;
  return {
    read: known(metrics.input_rows_per_second),
    written: known(metrics.output_rows_per_second),
    lag: lagOf(query),
    age: known(metrics.age_seconds),
    waits: typeof metrics.waits_for === "string" ? metrics.waits_for : undefined,
  };
}

/** What its state is due to. The last failure is kept for a while: of a query that runs again it is none. */
export function noteOf({ status }: QueryView): string | null | undefined {
  return status.message ?? (isInTrouble(status) ? status.error?.detail : undefined);
}

/** Whether it has failed, or waits for another try after a failure. */
export function isInTrouble({ state, error }: QueryView["status"]): boolean {
  return state === "failed" || state === "lost" || (state === "pending" && error != null);
}

/** Records that a query has not read yet, of all its sources that report that, or of one. */
export function lagOf({ status }: QueryView, relation?: string): number | undefined {
  return lagIn(status.metrics, relation);
}

/** The same of what a job reported at some moment. */
export function lagIn(metrics: QueryView["status"]["metrics"], relation?: string): number | undefined {
  const sources = (metrics.sources ?? []) as Source[];
  const counts = sources.flatMap((source) =>
    typeof source.lag === "number" && (relation === undefined || source.relation === relation) ? [source.lag] : [],
  );
  return counts.length > 0 ? counts.reduce((sum, one) => sum + one, 0) : undefined;
}

/** A rate for people: `0.4`, `413`, `12,400`. */
export const rate = (value: number): string =>
  value > 0 && value < 10 ? String(Math.round(value * 10) / 10) : Math.round(value).toLocaleString("en-US");

/** A number of seconds in its largest unit: `3 s`, `2 min`. */
export function span(seconds: number): string {
  if (seconds < 60) return `${Math.round(seconds)} s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min`;
  return seconds < 86_400 ? `${Math.floor(seconds / 3_600)} h` : `${Math.floor(seconds / 86_400)} d`;
}
