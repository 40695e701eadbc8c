// What a person has written must survive a reload. It stays in this browser.
const DRAFT = "leatstream.sql.draft";
const HISTORY = "leatstream.sql.history";
const KEPT = 50;

// Such statements hold passwords and keys, which no browser should keep.
const SECRETS =
  /\b(?:create|update)\s+(?:store|secret|schema_registry|descriptor_source)\b|password|secret|token|credential/i;

export type Past = { at: string; sql: string; failed: boolean };

/** The text of the editor as it was left. */
export function readDraft(): string {
  return localStorage.getItem(DRAFT) ?? "";
}

/** Keep the text of the editor. */
export function keepDraft(text: string): void {
  try {
    if (SECRETS.test(text)) localStorage.removeItem(DRAFT);
    else localStorage.setItem(DRAFT, text);
  } catch {
    // The browser's storage is full or closed: the text stays in the editor only.
  }
}

const listeners = new Set<(text: string) => void>();

/** Hear of texts that are opened while the workspace is shown. */
export function onOpen(listener: (text: string) => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/** Let the workspace open with this text; what stood there goes into the history. */
export function openText(text: string): void {
  const old = readDraft();
  if (old.trim() !== "" && old !== text) remember(old, false);
  keepDraft(text);
  for (const listener of listeners) listener(text);
}

/** What was run from this browser, the newest first. */
export function readHistory(): Past[] {
  return readList<Past>(HISTORY);
}

function readList<T>(key: string): T[] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(key) ?? "[]");
    return Array.isArray(found) ? (found as T[]) : [];
  } catch {
    return [];
  }
}

/** Add to the history, unless the newest entry is the same text or this one may hold a secret. */
export function remember(sql: string, failed: boolean): void {
  if (SECRETS.test(sql)) return;
  const old = readHistory().filter((past, index) => index > 0 || past.sql !== sql);
  const kept = [{ at: new Date().toISOString(), sql, failed }, ...old].slice(0, KEPT);
  try {
    localStorage.setItem(HISTORY, JSON.stringify(kept));
  } catch {
    // As above.
  }
}

const SAVED = "leatstream.sql.saved";
export type Saved = { name: string; sql: string };

/** The texts that were saved in this browser, by name. */
export function readSaved(): Saved[] {
  return readList<Saved>(SAVED);
}

/** Save a text under a name, in place of the one that has it; says why not, if so. */
export function save(name: string, sql: string): string | undefined {
  if (SECRETS.test(sql)) return "It may hold a secret, which no browser should keep.";
  return write([...readSaved().filter((one) => one.name !== name), { name, sql }]);
}

/** Forget a saved text. */
export function unsave(name: string): void {
  write(readSaved().filter((one) => one.name !== name));
}

function write(saved: readonly Saved[]): string | undefined {
  try {
    localStorage.setItem(SAVED, JSON.stringify([...saved].sort((a, b) => a.name.localeCompare(b.name))));
    return undefined;
  } catch {
    return "The browser's storage is full or closed.";
  }
}

/** Forget what was run. */
export function clearHistory(): void {
  localStorage.removeItem(HISTORY);
}
