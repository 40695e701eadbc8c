import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../api/client";
import { asText } from "../api/exact";
import type { Schemas } from "../api/problem";
import { runSql } from "../api/statements";

export type Source = { name: string; file: string; language: string; size: number; comment: string; owner: string };
// Of more queries than these, the callers are not looked for.
export const MOST_QUERIES = 500;

/** Function sources without their content, which may be large: SQL lists them so. */
export function useSources(): UseQueryResult<Source[]> {
  return useQuery({
    queryKey: ["functions", "sources"],
    queryFn: async () => {
      const [result] = (await runSql("LIST FUNCTION_SOURCES;")).results;
      const place = new Map((result?.columns ?? []).map((column, index) => [asText(column.name), index]));
      const rows = Array.isArray(result?.rows) ? result.rows : [];
      return rows.map((row): Source => {
        const cell = (name: string): string => asText(row[place.get(name) ?? -1]);
        return {
          name: cell("name"),
          file: cell("file"),
          language: cell("language"),
          size: Number(cell("size")),
          comment: cell("comment"),
          owner: cell("owner"),
        };
      });
    },
  });
}

/** Queries, to look for those that call a function. */
export function useQueries(): UseQueryResult<Schemas["QueryList"]> {
  return useQuery({
    queryKey: ["functions", "queries"],
    queryFn: () => dataOf(api.GET("/v1/queries", { params: { query: { page_size: MOST_QUERIES } } })),
    staleTime: 15_000,
  });
}
