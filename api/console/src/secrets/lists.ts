import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../api/client";
import type { Schemas } from "../api/problem";

// Of more stores or registries than these, uses are not looked for.
export const MOST = 500;
const params = { params: { query: { page_size: MOST } } };
type All = {
  stores: Schemas["StoreView"][];
  registries: Schemas["SchemaRegistryView"][];
  more: boolean;
};

/** Everything that may use a secret. */
export function useUsers(): UseQueryResult<All> {
  return useQuery({
    queryKey: ["secrets", "users"],
    queryFn: async () => {
      const [stores, registries] = await Promise.all([
        dataOf(api.GET("/v1/stores", params)),
        dataOf(api.GET("/v1/schema-registries", params)),
      ]);
      return {
        stores: stores.items,
        registries: registries.items,
        more: [stores, registries].some(({ next_page_token: token }) => token),
      };
    },
    staleTime: 15_000,
  });
}
