import { Group, Paper, Text, useComputedColorScheme } from "@mantine/core";
import { type KeyboardEvent, type ReactNode, useEffect, useId, useMemo, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { type FIGURES, highest, type Points, said } from "./history";

const HEIGHT = 150;
type Props = {
  figure: (typeof FIGURES)[number];
  points: Points;
  /** Both ends of the time axis, in seconds since 1970. */
  from: number;
  until: number;
};

/** A figure over time. The mouse or the arrow keys choose a moment, in every chart of the page at once. */
export function Chart({ figure, points, from, until }: Props): ReactNode {
  const { label, show } = figure;
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const shown = useRef(points);
  const ends = useRef([from, until] as const);
  const [chosen, setChosen] = useState<number | null>(null);
  const scheme = useComputedColorScheme("light");
  const id = useId();
  shown.current = points;
  ends.current = [from, until];
  // Made again for other colours only: new points move into the plot that there is.
  useEffect(() => {
    const parent = place.current;
    if (!parent) return;
    const made = new uPlot(
      optionsOf(parent, show, () => ends.current, setChosen),
      data(shown.current),
      parent,
    );
    plot.current = made;
    const watch = new ResizeObserver(() => made.setSize({ width: parent.clientWidth, height: HEIGHT }));
    watch.observe(parent);
    return () => {
      watch.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [scheme, show]);
  useEffect(() => plot.current?.setData(data(points)), [points, from, until]);
  const last = points[0].length - 1;
  const top = useMemo(() => highest(points), [points]);
  const at = Math.min(chosen ?? last, last);
  const move = (event: KeyboardEvent): void => {
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last }[event.key];
    if (to === undefined || !plot.current) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(last, to));
    const left = plot.current.valToPos(points[0][next] ?? 0, "x");
    plot.current.setCursor({ left, top: HEIGHT / 3 });
  };
  return (
    <Paper withBorder p="xs">
      <Group justify="space-between" wrap="nowrap" gap="xs">
        <Text size="sm" fw={600} id={id}>
          {label}
        </Text>
        <Text size="sm" className="chart-value">
          {chosen === null ? latest(points, last, show) : said(points, at, show)}
        </Text>
      </Group>
      <div
        ref={place}
        className="chart"
        role="slider"
        tabIndex={0}
        aria-labelledby={id}
        aria-valuemin={0}
        aria-valuemax={last}
        aria-valuenow={at}
        aria-valuetext={said(points, at, show)}
        onKeyDown={move}
        onBlur={() => plot.current?.setCursor({ left: -10, top: -10 })}
      />
      <Text size="xs" c="dimmed">
        {top === undefined ? "" : `Highest: ${said(points, top, show)}`}
      </Text>
    </Paper>
  );
}

function latest([, values]: Points, place: number, show: Props["figure"]["show"]): string {
  const value = values[place];
  return typeof value === "number" ? show(value) : "";
}

const data = ([times, values]: Points): uPlot.AlignedData => [times, values];

function optionsOf(
  parent: HTMLElement,
  show: Props["figure"]["show"],
  ends: () => readonly [number, number],
  choose: (place: number | null) => void,
): uPlot.Options {
  const style = getComputedStyle(parent);
  const colour = (name: string): string => style.getPropertyValue(name).trim();
  const [line, text, rule] = [
    "--mantine-color-anchor",
    "--mantine-color-dimmed",
    "--mantine-color-default-border",
  ].map(colour) as [string, string, string];
  const font = `11px ${style.fontFamily}`;
  const lines = { stroke: rule, width: 1 };
  const axis: uPlot.Axis = { stroke: text, font, grid: lines, ticks: { ...lines, size: 4 } };
  return {
    width: parent.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    // The same moment in all charts.
    cursor: { sync: { key: "charts" }, y: false, drag: { x: false, y: false } },
    scales: {
      x: { range: () => [...ends()] as [number, number] },
      // From zero, so that heights can be compared; a figure that is zero throughout has an axis too.
      y: { range: (_, __, most) => [0, most > 0 ? most * 1.1 : 1] },
    },
    axes: [
      { ...axis, size: 26, values: (_, splits) => splits.map(clock) },
      { ...axis, size: 58, space: 28, values: (_, splits) => splits.map((value) => show(value, true)) },
    ],
    series: [{}, { stroke: line, fill: `${line}22`, width: 1.5, points: { show: false } }],
    hooks: { setCursor: [({ cursor }) => choose((cursor.left ?? -1) < 0 ? null : (cursor.idx ?? null))] },
  };
}

/** The hour and minute of a moment, as the reader's clock shows it. */
function clock(seconds: number): string {
  const date = new Date(seconds * 1_000);
  return [date.getHours(), date.getMinutes()].map((part) => String(part).padStart(2, "0")).join(":");
}
