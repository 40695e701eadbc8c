import type { Schemas } from "../api/problem";

export type Driver = Schemas["DriverView"];

/** Where a driver's process is: the pod, or the host with the number of the process. */
export function placeOf({ pod, host, pid }: Driver): string {
  if (pod) return pod;
  return [host, pid !== null && `process ${pid}`].filter(Boolean).join(", ");
}

/** What memory a driver takes, and of its heap how much is used. */
export function memoryOf({ memory_bytes, heap_bytes, heap_limit_bytes }: Driver): string {
  const heap = heap_bytes === null ? "" : `heap ${bytes(heap_bytes)}`;
  const limit = heap_limit_bytes === null ? "" : ` of ${bytes(heap_limit_bytes)}`;
  return [memory_bytes !== null && bytes(memory_bytes), heap && heap + limit].filter(Boolean).join(", ");
}

/** A number of bytes as people write it. */
export function bytes(count: number): string {
  const mebibytes = count / 1_048_576;
  return mebibytes < 1_024 ? `${Math.round(mebibytes)} MiB` : `${(mebibytes / 1_024).toFixed(1)} GiB`;
}
