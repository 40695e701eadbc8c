import type { Forms } from "../parts/AsCode";
import { api, dataOf } from "./client";
import { curl, shell } from "./code";
import type { Schemas } from "./problem";

/** Runs statements; with `atomic` all of them count, or none. */
export function runSql(sql: string, atomic = false): Promise<Schemas["StatementAnswer"]> {
  return dataOf(api.POST("/v1/statements", { body: { sql, atomic } }));
}

/** The ways to send statements. */
export function sqlForms(sql: string, atomic = false): Forms {
  return {
    sql,
    curl: curl("POST", "/v1/statements", atomic ? { sql, atomic } : { sql }),
    leat: `leat sql${atomic ? " --atomic" : ""} ${shell(sql)}`,
  };
}
