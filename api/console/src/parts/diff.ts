type DiffLine = { sign: " " | "+" | "-"; text: string };

// Longer texts are shown as removed and added: the table of the comparison grows with both.
const MOST = 2_000;

/** The lines of two texts, with those that only one of them has marked. */
export function diff(before: string, after: string): DiffLine[] {
  const [a, b] = [before.split("\n"), after.split("\n")];
  if (a.length > MOST || b.length > MOST) return [...mark("-", a), ...mark("+", b)];
  // The longest common lines, from each place to the end.
  const width = b.length + 1;
  const common = new Uint16Array((a.length + 1) * width);
  const at = (i: number, j: number): number => common[i * width + j] ?? 0;
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      common[i * width + j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) {
      lines.push({ sign: " ", text: a[i] ?? "" });
      i += 1;
      j += 1;
    } else if (at(i + 1, j) >= at(i, j + 1)) lines.push({ sign: "-", text: a[i++] ?? "" });
    else lines.push({ sign: "+", text: b[j++] ?? "" });
  }
  return [...lines, ...mark("-", a.slice(i)), ...mark("+", b.slice(j))];
}

const mark = (sign: DiffLine["sign"], lines: readonly string[]): DiffLine[] => lines.map((text) => ({ sign, text }));
