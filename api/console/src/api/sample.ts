import { api, dataOf } from "./client";
import { parseExact } from "./exact";
import type { Schemas } from "./problem";

/** A few records of a relation as rows; numbers keep all their digits. */
export async function loadSample(
  relation: string,
  from: "latest" | "earliest",
  limit: number,
): Promise<Schemas["RelationSample"]> {
  const path = { params: { path: { relation }, query: { from, limit } }, parseAs: "text" } as const;
  const text = await dataOf(api.GET("/v1/relations/{relation}/sample", path));
  return parseExact(text as unknown as string) as Schemas["RelationSample"];
}
