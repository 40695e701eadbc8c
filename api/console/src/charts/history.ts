import { lagIn } from "../api/figures";
import type { Schemas } from "../api/problem";
import { localTime } from "../parts/time";

type Progress = Schemas["QueryProgressView"];
/** What a query's job reported at one moment. */
export type Moment = { at: string; time: number; attempt: number; values: readonly (number | null)[] };
/** Times in seconds since 1970, and beside them the values of one figure: null where there is none. */
export type Points = readonly [number[], (number | null)[]];

export const SPANS = { "15m": 900, "1h": 3_600, "6h": 21_600, "24h": 86_400 } as const;
export type Span = keyof typeof SPANS;
export const isSpan = (text: string | undefined): text is Span => text !== undefined && text in SPANS;

const compact = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 });
const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 1 });
const counted =
  (unit: string) =>
  (value: number, short = false): string =>
    short ? compact.format(value) : `${whole.format(value)} ${unit}`;

function lasted(value: number): string {
  if (value < 1_000) return `${whole.format(value)} ms`;
  return value < 60_000 ? `${whole.format(value / 1_000)} s` : `${whole.format(value / 60_000)} min`;
}

type Figure = {
  label: string;
  of: (metrics: Progress["metrics"]) => unknown;
  /** A value with its unit, or as the axis has it. */
  show: (value: number, short?: boolean) => string;
};

export const FIGURES: readonly Figure[] = [
  { label: "Rows read per second", of: (found) => found.input_rows_per_second, show: counted("rows/s") },
  { label: "Rows written per second", of: (found) => found.output_rows_per_second, show: counted("rows/s") },
  { label: "Lag", of: (found) => lagIn(found), show: counted("records") },
  { label: "Duration of a batch", of: (found) => found.batch_duration_ms, show: lasted },
  { label: "Rows kept as state", of: (found) => found.state_rows, show: counted("rows") },
];

/** A report with the figures that are drawn. */
export function momentOf({ at, attempt, metrics }: Progress): Moment {
  const values = FIGURES.map(({ of }) => of(metrics));
  return {
    at,
    time: Date.parse(at) / 1_000,
    attempt,
    values: values.map((value) => (typeof value === "number" && Number.isFinite(value) ? value : null)),
  };
}

// Before the last hour there is one moment each five minutes, wherever in them.
const LONGEST_STEP = 15 * 60;

/** One figure of these moments; the line breaks where the job started again, or reported nothing. */
export function pointsOf(moments: readonly Moment[], figure: number): Points {
  const [times, values]: [number[], (number | null)[]] = [[], []];
  moments.forEach((moment, place) => {
    const before = moments[place - 1];
    if (before && (before.attempt !== moment.attempt || moment.time - before.time > LONGEST_STEP)) {
      times.push((before.time + moment.time) / 2);
      values.push(null);
    }
    times.push(moment.time);
    values.push(moment.values[figure] ?? null);
  });
  return [times, values];
}

/** The place of the highest value; undefined where there is no value. */
export function highest([, values]: Points): number | undefined {
  let found: number | undefined;
  values.forEach((value, place) => {
    if (value !== null && value > (values[found ?? -1] ?? Number.NEGATIVE_INFINITY)) found = place;
  });
  return found;
}

/** One point in words: `120 records at 2026-01-31 12:00:00`. */
export function said([times, values]: Points, place: number, show: Figure["show"]): string {
  const [time, value] = [times[place], values[place]];
  if (time === undefined) return "";
  return `${typeof value === "number" ? show(value) : "nothing reported"} at ${localTime(time * 1_000)}`;
}
