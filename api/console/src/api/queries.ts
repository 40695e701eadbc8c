import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { api, dataOf } from "./client";
import type { Schemas } from "./problem";

/** States of queries, and so of applications; those that people look for come first. */
export const STATES: Schemas["QueryState"][] = [
  "running",
  "failed",
  "starting",
  "pending",
  "stopping",
  "stopped",
  "lost",
  "completed",
];

/** Of more queries than these, the others are not looked at. */
export const MOST_QUERIES = 500;

/** The first queries that the account sees, to look through all of them. */
export function useQueryList(): UseQueryResult<Schemas["QueryList"]> {
  return useQuery({
    queryKey: ["queries"],
    queryFn: () => dataOf(api.GET("/v1/queries", { params: { query: { page_size: MOST_QUERIES } } })),
    staleTime: 15_000,
  });
}
