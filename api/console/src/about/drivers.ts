import type { Schemas } from "../api/problem";

type QueryView = Schemas["QueryView"];
export type Driver = {
  id: string;
  pid: number | undefined;
  mode: string;
  memory: number | undefined;
  queries: string[];
};
const WITH_DRIVER = ["starting", "running", "stopping"];

/** The drivers that run queries. Each query of a shared driver reports the memory of the whole. */
export function driversOf(queries: readonly QueryView[]): Driver[] {
  const found = new Map<string, Driver>();
  for (const { name, status, plan } of queries) {
    const { job, state, metrics } = status;
    if (!job?.driver_id || !WITH_DRIVER.includes(state)) continue;
    const old = found.get(job.driver_id);
    const memory = typeof metrics.memory_bytes === "number" ? metrics.memory_bytes : undefined;
    found.set(job.driver_id, {
      id: job.driver_id,
      pid: job.pid ?? old?.pid,
      mode: plan?.driver ?? old?.mode ?? "dedicated",
      memory: Math.max(memory ?? 0, old?.memory ?? 0) || undefined,
      queries: [...(old?.queries ?? []), name],
    });
  }
  return [...found.values()];
}

/** Queries that shall run and have no driver yet, each with what it waits for. */
export function waitingOf(queries: readonly QueryView[]): { name: string; message: string }[] {
  return queries
    .filter(({ status }) => status.state === "pending" && status.desired_state === "running")
    .map(({ name, status }) => ({ name, message: status.message ?? "" }));
}

/** A number of bytes as people write it. */
export function bytes(count: number): string {
  const mebibytes = count / 1_048_576;
  return mebibytes < 1_024 ? `${Math.round(mebibytes)} MiB` : `${(mebibytes / 1_024).toFixed(1)} GiB`;
}
