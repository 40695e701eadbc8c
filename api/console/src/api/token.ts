// The session's storage ends with the tab: a token does not stay on a shared machine.
const KEY = "leatstream.token";
const listeners = new Set<() => void>();
let refused = false;

/** Say that the caller is another one now; `wasRefused` as of `forgetToken`. */
export function tellListeners(wasRefused = false): void {
  refused = wasRefused;
  for (const listener of listeners) listener();
}

/** The token of this tab, or null before sign-in. */
export function readToken(): string | null {
  return sessionStorage.getItem(KEY);
}

/** Keep a token that the server has accepted. */
export function keepToken(token: string): void {
  sessionStorage.setItem(KEY, token);
  tellListeners();
}

/** Forget the token; `wasRefused` says that the server did not accept it any more. */
export function forgetToken(wasRefused = false): void {
  if (readToken() === null) return;
  sessionStorage.removeItem(KEY);
  tellListeners(wasRefused);
}

/** Whether the last token was forgotten because the server refused it. */
export function tokenWasRefused(): boolean {
  return refused;
}

/** Call `listener` at each change of the token; the result ends it. */
export function onTokenChange(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
