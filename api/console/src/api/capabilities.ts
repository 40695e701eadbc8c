import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { api, dataOf } from "./client";
import type { Schemas } from "./problem";

/** What each kind of store can be used for. */
export function useCapabilities(): UseQueryResult<Schemas["CapabilityMatrix"]> {
  return useQuery({
    queryKey: ["about", "capabilities"],
    queryFn: () => dataOf(api.GET("/v1/server/capabilities")),
    staleTime: Number.POSITIVE_INFINITY,
  });
}
