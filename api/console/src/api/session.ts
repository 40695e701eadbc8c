import { errorOf, unreachable } from "./problem";
import { forgetToken, readToken, tellListeners } from "./token";

// Says that a page of this server sends the request; pages elsewhere cannot send it.
export const MARK = "X-Leatstream-Console";
const PATH = "/v1/session";
const HEADERS = { [MARK]: "1" };
export type Session = { issuer: string | null; account: string | null };

let asked: Promise<Session> | null = null;
let account: string | null = null;

/** The session that an identity provider gave this browser, and where it can get one; asked for once. */
export function findSession(): Promise<Session> {
  asked ??= askForSession();
  return asked;
}

async function askForSession(): Promise<Session> {
  // Not by the typed client: the command line has no cookies, so no command of leat does this.
  const answer = await fetch(PATH, { headers: HEADERS }).catch(() => null);
  if (!answer?.ok) {
    asked = null;
    return { issuer: null, account };
  }
  const found = (await answer.json()) as Partial<Session>;
  account = found.account ?? null;
  return { issuer: found.issuer ?? null, account };
}

/** Ask again: all tabs of a browser share the session, and another one may have ended it or begun a new one. */
export async function checkSession(): Promise<void> {
  const before = account;
  if (readToken() !== null || before === null) return;
  asked = null;
  const { account: now } = await findSession();
  if (now === before) return;
  if (now === null) tellListeners(true);
  // What is shown was read by another account: begin from nothing.
  else window.location.reload();
}

/** Whether requests of this tab have a token, or the cookie of a session. */
export async function isSignedIn(): Promise<boolean> {
  return readToken() !== null || (await findSession()).account !== null;
}

/** Whether this tab was signed in when it last asked. */
export function wasSignedIn(): boolean {
  return readToken() !== null || account !== null;
}

/** The headers by which the server knows the caller. */
export function callerHeaders(): Record<string, string> {
  const token = readToken();
  return token === null ? HEADERS : { Authorization: `Bearer ${token}` };
}

/** Note that the server no longer accepts the session. */
export function sessionWasRefused(): void {
  if (account === null) return;
  account = null;
  asked = null;
  tellListeners(true);
}

/** Forget the token, and end the session on the server; without a token, throws if the session goes on. */
export async function signOut(): Promise<void> {
  const answer = await fetch(PATH, { method: "DELETE", headers: HEADERS }).catch(() => null);
  const hasToken = readToken() !== null;
  if (!answer?.ok && !hasToken) throw answer ? await errorOf(answer) : unreachable();
  account = null;
  asked = null;
  if (hasToken) forgetToken();
  else tellListeners();
}
