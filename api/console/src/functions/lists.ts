import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { asText } from "../api/exact";
import { runSql } from "../api/statements";

export type Source = { name: string; file: string; language: string; size: number; comment: string; owner: string };

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
