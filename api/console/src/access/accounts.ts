import { api, dataOf } from "../api/client";
import { curl, hclText, pathOf, resource, shell, sqlText } from "../api/code";
import { quoted } from "../api/names";
import type { Schemas } from "../api/problem";
import type { Forms } from "../parts/AsCode";

export type Account = Schemas["AccountView"];
export type AccountKind = "user" | "service_account";
export type Given = { name: string; roles: string[]; defaultRole: string; comment: string };
type Body = Schemas["UserBody"];
type Header = { "If-Match"?: string; "If-None-Match"?: "*" };

export const words = (kind: AccountKind): string => kind.replace("_", " ");
const collection = (kind: AccountKind): string => `${kind.replace("_", "-")}s`;
const command = (kind: AccountKind): string => kind.replace("_", "-");

function put(kind: AccountKind, name: string, body: Body, header: Header): Promise<Account> {
  const path = quoted(name);
  return kind === "user"
    ? dataOf(api.PUT("/v1/users/{user}", { params: { path: { user: path }, header }, body }))
    : dataOf(
        api.PUT("/v1/service-accounts/{service_account}", {
          params: { path: { service_account: path }, header },
          body,
        }),
      );
}

const bodyOf = ({ roles, defaultRole, comment }: Given): Body => ({
  roles,
  default_role: defaultRole || null,
  comment: comment || null,
});

/** Creates an account; one of this name is not replaced. */
export function createAccount(kind: AccountKind, given: Given): Promise<Account> {
  return put(kind, given.name, bodyOf(given), { "If-None-Match": "*" });
}

/** Changes what is given, unless somebody else has changed the account meanwhile; roles that are left out stay. */
export function changeAccount(kind: AccountKind, account: Account, more: Partial<Body>): Promise<Account> {
  const { default_role, comment, disabled, generation } = account;
  return put(kind, account.name, { default_role, comment, disabled, ...more }, { "If-Match": `"${generation}"` });
}

/** Drops an account with its tokens. */
export function dropAccount(kind: AccountKind, name: string): Promise<unknown> {
  const path = quoted(name);
  return kind === "user"
    ? api.DELETE("/v1/users/{user}", { params: { path: { user: path } } })
    : api.DELETE("/v1/service-accounts/{service_account}", { params: { path: { service_account: path } } });
}

export function creationForms(kind: AccountKind, given: Given): Forms {
  const { name, roles, defaultRole, comment } = given;
  const properties = [
    roles.length > 0 && `'roles' = ${sqlText(roles.join(","))}`,
    defaultRole && `'default.role' = ${sqlText(defaultRole)}`,
  ].filter(Boolean);
  const flags = [
    ...roles.map((role) => ` --role ${shell(role)}`),
    defaultRole && ` --default-role ${shell(defaultRole)}`,
    comment && ` --comment ${shell(comment)}`,
  ].filter(Boolean);
  return {
    sql: `CREATE ${kind.toUpperCase()} ${quoted(name)}${comment ? ` COMMENT ${sqlText(comment)}` : ""}${
      properties.length > 0 ? ` WITH (${properties.join(", ")})` : ""
    };`,
    terraform: resource(kind, name, {
      name,
      comment,
      roles: roles.length > 0 ? { hcl: `[${roles.map(hclText).join(", ")}]` } : null,
      default_role: defaultRole,
    }),
    curl: curl("PUT", pathOf(collection(kind), name), bodyOf(given)),
    leat: `leat ${command(kind)} create ${shell(quoted(name))}${flags.join("")}`,
  };
}

/** What changes an account: SQL has no statement for it. */
export function changeForms(kind: AccountKind, account: Account, more: Partial<Body>): Forms {
  const { default_role, comment, disabled, name } = account;
  return { curl: curl("PUT", pathOf(collection(kind), name), { default_role, comment, disabled, ...more }) };
}

export function switchForms(kind: AccountKind, account: Account): Forms {
  const disabled = !account.disabled;
  return {
    terraform: `# In resource "leatstream_${kind}" whose name is ${hclText(account.name)}:\ndisabled = ${disabled}`,
    ...changeForms(kind, account, { disabled }),
    leat: `leat ${command(kind)} ${disabled ? "disable" : "enable"} ${shell(quoted(account.name))}`,
  };
}

export function dropForms(kind: AccountKind, name: string): Forms {
  return {
    sql: `DROP ${kind.toUpperCase()} ${quoted(name)};`,
    curl: curl("DELETE", pathOf(collection(kind), name)),
    leat: `leat ${command(kind)} delete ${shell(quoted(name))}`,
  };
}
