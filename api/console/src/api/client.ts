import createClient, { type Middleware } from "openapi-fetch";
import type { paths } from "../api";
import { patientFetch } from "./patience";
import { ApiError, errorOf, unreachable } from "./problem";
import { callerHeaders, sessionWasRefused } from "./session";
import { forgetToken, readToken } from "./token";

const middleware: Middleware = {
  onRequest({ request }) {
    if (!request.headers.has("Authorization")) {
      for (const [name, value] of Object.entries(callerHeaders())) request.headers.set(name, value);
    }
    return request;
  },
  async onResponse({ request, response }) {
    if (response.ok) return;
    noteRefusal(response.status, request.headers.get("Authorization"));
    throw await errorOf(response);
  },
  onError({ error }) {
    if (!(error instanceof DOMException && error.name === "AbortError")) return unreachable();
    return new ApiError("stopped", 0, "You stopped waiting for the answer. The server may have run the statements.");
  },
};

/** Sign out when the server refuses this tab's token or session, and not a token that is being tried. */
export function noteRefusal(status: number, authorization: string | null): void {
  if (status !== 401) return;
  if (authorization === null) sessionWasRefused();
  else if (authorization === `Bearer ${readToken()}`) forgetToken(true);
}

/** Calls of the REST API, typed by openapi.yaml. Every failure is thrown as an ApiError. */
export const api = createClient<paths>({ fetch: patientFetch });
api.use(middleware);

/** The body of a successful answer. */
export async function dataOf<T>(answer: Promise<{ data?: T }>): Promise<T> {
  return (await answer).data as T;
}
