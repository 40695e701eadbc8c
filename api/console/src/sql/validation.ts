import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../api/client";
import { type ApiError, asApiError, type Schemas } from "../api/problem";

/** `name`: of the query or application that the text would replace. */
type Context = Pick<Schemas["ValidationBody"], "database" | "schema" | "store" | "name">;
type Verdict = {
  text: string;
  faults: readonly Schemas["ProblemView"][];
  statements: readonly Schemas["ValidatedStatement"][];
};
export type Checked =
  | { state: "empty" }
  | ({ state: "checking" | "checked" } & Verdict)
  | { state: "failed"; error: ApiError };

// A check asks a warm driver: not at every key.
const DELAY_MS = 400;

/** What the server says of a text, a moment after the last key. Nothing is run. */
export function useValidation(text: string, context: Context): Checked {
  const [settled] = useDebouncedValue(text, DELAY_MS);
  const { database, schema, store, name } = context;
  const found = useQuery({
    queryKey: ["validate", settled, database, schema, store, name],
    enabled: settled.trim() !== "",
    queryFn: async ({ signal }): Promise<Verdict> => {
      const body = { sql: settled, database, schema, store, name };
      const { statements } = await dataOf(api.POST("/v1/statements:validate", { body, signal }));
      return { text: settled, statements, faults: statements.flatMap(({ problems }) => problems) };
    },
    placeholderData: keepPreviousData,
    // The catalog may have changed since.
    staleTime: 0,
    gcTime: 60_000,
  });
  if (text.trim() === "") return { state: "empty" };
  if (found.error) return { state: "failed", error: asApiError(found.error) };
  const verdict = found.data ?? { text, faults: [], statements: [] };
  return { state: settled === text && !found.isFetching ? "checked" : "checking", ...verdict };
}

const FIRST = { params: { query: { page_size: 200 } } };

/** Names for completion: the first of each list, as many as a page has. */
export function useNames(): { database: string[]; schema: string[]; store: string[]; relations: string[] } {
  const found = useQuery({
    queryKey: ["names"],
    queryFn: async () => {
      const [databases, stores, relations] = await Promise.all([
        dataOf(api.GET("/v1/databases", FIRST)),
        dataOf(api.GET("/v1/stores", FIRST)),
        dataOf(api.GET("/v1/relations", FIRST)),
      ]);
      return {
        database: databases.items.map(({ name }) => name),
        schema: [...new Set(relations.items.map(({ schema }) => schema))],
        store: stores.items.map(({ name }) => name),
        relations: relations.items.map(({ fqn }) => fqn),
      };
    },
    staleTime: 30_000,
  });
  return found.data ?? { database: [], schema: [], store: [], relations: [] };
}
