const UNITS: readonly [string, number][] = [
  ["d", 86_400],
  ["h", 3_600],
  ["min", 60],
  ["s", 1],
];

/** How long ago a moment was, in its largest unit: `3 h`. */
export function age(moment: string | null | undefined, now = Date.now()): string {
  if (!moment) return "";
  const seconds = Math.max(0, Math.round((now - Date.parse(moment)) / 1000));
  const [unit, length] = UNITS.find(([, size]) => seconds >= size) ?? ["s", 1];
  return `${Math.floor(seconds / length)} ${unit}`;
}

/** A moment in the local time zone, to the second. */
export function localTime(moment: string | number): string {
  const date = new Date(moment);
  if (Number.isNaN(date.getTime())) return String(moment);
  const two = (n: number): string => String(n).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}
