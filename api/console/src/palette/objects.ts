import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../api/client";
import { quoted } from "../api/names";

/** An object of the catalog, and where its page is. */
export type Found = { kind: string; name: string; to: string; params?: object; search?: object };
type Load = (params: {
  params: { query: { q: string; page_size: number } };
  signal: AbortSignal;
}) => Promise<Found[]>;

// Of each kind the first few: a longer name finds the others.
const MOST = 5;

const one = (kind: string, name: string, path: string, parameter: string): Found => ({
  kind,
  name,
  to: `/${path}/$${parameter}`,
  params: { [parameter]: quoted(name) },
});

const KINDS: readonly Load[] = [
  async (given) =>
    (await dataOf(api.GET("/v1/queries", given))).items.map(({ name }) => one("query", name, "queries", "query")),
  async (given) =>
    (await dataOf(api.GET("/v1/relations", given))).items.map(({ fqn, kind }) => ({
      kind: kind.replace("_", " "),
      name: fqn,
      to: "/relations/$relation",
      params: { relation: fqn },
    })),
  async (given) =>
    (await dataOf(api.GET("/v1/stores", given))).items.map(({ name }) => one("store", name, "stores", "store")),
  async (given) =>
    (await dataOf(api.GET("/v1/applications", given))).items.map(({ name }) =>
      one("application", name, "applications", "application"),
    ),
  async (given) =>
    (await dataOf(api.GET("/v1/functions", given))).items.map(({ name }) =>
      one("function", name, "functions", "function"),
    ),
  async (given) =>
    (await dataOf(api.GET("/v1/schema-registries", given))).items.map(({ name }) =>
      one("schema registry", name, "schema-registries", "registry"),
    ),
  async (given) =>
    (await dataOf(api.GET("/v1/secrets", given))).items.map(({ name }) => one("secret", name, "secrets", "secret")),
  async (given) =>
    (await dataOf(api.GET("/v1/databases", given))).items.map(({ name }) => ({
      kind: "database",
      name,
      to: "/catalog",
      search: { database: name },
    })),
  async (given) =>
    (await dataOf(api.GET("/v1/roles", given))).items.map(({ name }) => one("role", name, "access/roles", "role")),
];

export type Answer = { items: Found[]; failed: number };

/** Objects whose name holds the text. What one may not list is left out, and does not hide the rest. */
export function useObjects(q: string): UseQueryResult<Answer> {
  return useQuery({
    queryKey: ["palette", q],
    enabled: q !== "",
    queryFn: async ({ signal }): Promise<Answer> => {
      const given = { params: { query: { q, page_size: MOST } }, signal };
      const answers = await Promise.allSettled(KINDS.map((load) => load(given)));
      return {
        items: answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : [])),
        failed: answers.filter(({ status }) => status === "rejected").length,
      };
    },
    staleTime: 10_000,
    gcTime: 60_000,
  });
}
