// As long as the command line: the server names the pause, and has done nothing.
const MOST_MS = 30_000;

/** As `fetch`; while this account sends too many requests, waits as long as the server says and sends it again. */
export async function patientFetch(request: Request): Promise<Response> {
  const end = performance.now() + MOST_MS;
  for (;;) {
    const again = request.clone();
    const answer = await fetch(request);
    const pause = Number(answer.headers.get("Retry-After") ?? "1") * 1_000;
    if (answer.status !== 429 || !(performance.now() + pause < end)) return answer;
    await paused(pause, request.signal);
    request = again;
  }
}

async function paused(milliseconds: number, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}
