import createClient, { type Middleware } from "openapi-fetch";
import type { paths } from "../api";
import { ApiError, errorOf, unreachable } from "./problem";
import { forgetToken, readToken } from "./token";

const middleware: Middleware = {
  onRequest({ request }) {
    const token = readToken();
    if (token !== null && !request.headers.has("Authorization")) {
      request.headers.set("Authorization", `Bearer ${token}`);
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

/** Sign out when the server refuses the token of this tab, and not one that is being tried. */
export function noteRefusal(status: number, authorization: string | null): void {
  if (status === 401 && authorization === `Bearer ${readToken()}`) forgetToken(true);
}

/** Calls of the REST API, typed by openapi.yaml. Every failure is thrown as an ApiError. */
export const api = createClient<paths>();
api.use(middleware);

/** The body of a successful answer. */
export async function dataOf<T>(answer: Promise<{ data?: T }>): Promise<T> {
  return (await answer).data as T;
}
