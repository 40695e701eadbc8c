import type { components } from "../api";

export type Schemas = components["schemas"];
export type FaultView = Schemas["FaultView"];

/** An answer of the server that is no success, or no answer at all. */
export class ApiError extends Error {
  constructor(
    readonly code: string,
    readonly status: number,
    detail: string,
    readonly faults: readonly FaultView[] = [],
    readonly requestId?: string,
    readonly results: readonly Schemas["StatementResultView"][] = [],
  ) {
    super(detail);
  }

  /** What to do about it, where the server knows. */
  get hint(): string | undefined {
    return this.faults.find((fault) => fault.hint)?.hint ?? undefined;
  }
}

/** The error in an answer whose status is 400 or above. */
export async function errorOf(response: Response): Promise<ApiError> {
  try {
    const body = (await response.json()) as Schemas["Problem"] & { results?: Schemas["StatementResultView"][] };
    return new ApiError(
      body.code,
      response.status,
      body.detail,
      body.errors ?? [],
      body.request_id,
      body.results ?? [],
    );
  } catch {
    const detail = `The server answered with status ${response.status} and no explanation.`;
    return new ApiError("unexpected-answer", response.status, detail);
  }
}

/** Any thrown value as an error that can be shown. */
export function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof TypeError && /fetch|network|load/i.test(error.message)) return unreachable();
  return new ApiError("console-fault", 0, error instanceof Error ? error.message : String(error));
}

/** The error of a request that got no answer. */
export function unreachable(): ApiError {
  const hint = "Check that leat dev or leat serve is running and that this address reaches it.";
  const detail = "The server does not answer.";
  return new ApiError("server-unreachable", 0, detail, [{ detail, hint }]);
}
