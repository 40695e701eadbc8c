import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../api/client";
import type { Schemas } from "../api/problem";

// Roles and accounts are few. What is beyond this page is said to be left out.
export const MOST = 1_000;
/** Who has made the built-in roles. */
export const BUILT_IN = "leatstream";
type List<T> = { items: T[]; next_page_token?: string | null };
type AllRoles = UseQueryResult<List<Schemas["RoleView"]>>;
type AllAccounts = UseQueryResult<List<Schemas["AccountView"]>>;
const params = { params: { query: { page_size: MOST } } };

/** All roles that the caller sees. */
export function useRoles(enabled = true): AllRoles {
  return useQuery({ queryKey: ["access", "roles"], queryFn: () => dataOf(api.GET("/v1/roles", params)), enabled });
}

/** All users that the caller sees. */
export function useUsers(): AllAccounts {
  return useQuery({ queryKey: ["access", "users"], queryFn: () => dataOf(api.GET("/v1/users", params)) });
}

/** All service accounts that the caller sees. */
export function useServiceAccounts(): AllAccounts {
  return useQuery({
    queryKey: ["access", "service-accounts"],
    queryFn: () => dataOf(api.GET("/v1/service-accounts", params)),
  });
}
