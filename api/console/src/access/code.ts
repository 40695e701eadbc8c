import { curl, hclText, pathOf, resource, shell, sqlText as text } from "../api/code";
import { quoted } from "../api/names";
import type { Forms } from "../parts/AsCode";
import { type GrantView, plural, queryOf } from "./privileges";

export const rolePath = (role: string): string => pathOf("roles", role);
const tokenPath = (token: string): string => pathOf("tokens", token);

export type NewRole = { name: string; comment: string; inherits: string[] };

export function roleForms({ name, comment, inherits }: NewRole): Forms {
  const inherited = inherits.map((one) => `GRANT ROLE ${quoted(one)} TO ROLE ${quoted(name)};`);
  const list = inherits.map((one) => hclText(one)).join(", ");
  const hcl = resource("role", name, { name, comment });
  return {
    sql: [`CREATE ROLE ${quoted(name)}${comment ? ` COMMENT ${text(comment)}` : ""};`, ...inherited].join("\n"),
    terraform: list ? hcl.replace(/\n}$/, `\n  inherits = [${list}]\n}`) : hcl,
    curl: curl("PUT", rolePath(name), { comment: comment || null, inherits: inherits.length > 0 ? inherits : null }),
    leat: [
      `leat role create ${shell(quoted(name))}`,
      ...inherits.map((one) => `--inherits ${shell(one)}`),
      ...(comment ? [`--comment ${shell(comment)}`] : []),
    ].join(" "),
  };
}

/** The object of a grant in SQL. */
function sqlTarget(grant: GrantView): string {
  if (grant.on === "organization") return "ORGANIZATION";
  if (grant.name) {
    const entities = grant.entities ? ` ENTITIES ${text(grant.entities)}` : "";
    return `${grant.on.toUpperCase()} ${grant.name}${entities}`;
  }
  const place = grant.in_schema
    ? ` IN SCHEMA ${grant.in_schema}`
    : grant.in_database
      ? ` IN DATABASE ${grant.in_database}`
      : "";
  return `ALL ${plural(grant.on).toUpperCase()}${place}`;
}

/** The path of one grant, which names what it is on in its query. */
export function grantPath(role: string, grant: GrantView): string {
  const query = new URLSearchParams(queryOf(grant));
  const more = query.size > 0 ? `?${query}` : "";
  return `${rolePath(role)}/grants/${grant.privilege}/${grant.on}${more}`;
}

/** A grant as the arguments of `leat role grant` and `leat role revoke`. */
function leatGrant(role: string, grant: GrantView): string {
  const { privilege, on, name, in_database, in_schema, entities } = grant;
  const flags = { "--in-database": in_database, "--in-schema": in_schema, "--entities": entities };
  const given = Object.entries(flags).flatMap(([flag, value]) => (value ? [`${flag} ${shell(value)}`] : []));
  return [shell(quoted(role)), privilege, name ? shell(`${on}:${name}`) : on, ...given].join(" ");
}

export function grantForms(role: string, grant: GrantView): Forms {
  const { privilege, on, name, in_database, in_schema, entities, grant_option } = grant;
  const members = { role, privilege, on, name, in_database, in_schema, entities, grant_option: grant_option || null };
  const option = grant_option ? " WITH GRANT OPTION" : "";
  const label = [role, privilege, name ?? in_schema ?? in_database ?? on].join("_");
  return {
    sql: `GRANT ${privilege.toUpperCase()} ON ${sqlTarget(grant)} TO ROLE ${quoted(role)}${option};`,
    terraform: resource("grant", label, members),
    curl: curl("PUT", grantPath(role, grant), grant_option ? { grant_option: true } : {}),
    leat: `leat role grant ${leatGrant(role, grant)}${grant_option ? " --with-grant-option" : ""}`,
  };
}

export function revokeForms(role: string, grant: GrantView): Forms {
  return {
    sql: `REVOKE ${grant.privilege.toUpperCase()} ON ${sqlTarget(grant)} FROM ROLE ${quoted(role)};`,
    curl: curl("DELETE", grantPath(role, grant)),
    leat: `leat role revoke ${leatGrant(role, grant)}`,
  };
}

export type MemberKind = "role" | "user" | "service_account";
export type Member = { kind: MemberKind; name: string };

export function memberPath(role: string, { kind, name }: Member): string {
  return `${rolePath(role)}/members/${kind}/${encodeURIComponent(quoted(name))}`;
}

const leatMember = (role: string, { kind, name }: Member): string =>
  `${shell(quoted(role))} ${shell(`${kind}:${quoted(name)}`)}`;

export function memberForms(role: string, member: Member): Forms {
  const { kind, name } = member;
  return {
    sql: `GRANT ROLE ${quoted(role)} TO ${kind.toUpperCase()} ${quoted(name)};`,
    terraform: resource("role_membership", `${role}_${name}`, { role, member_kind: kind, member: name }),
    curl: curl("PUT", memberPath(role, member), {}),
    leat: `leat role add-member ${leatMember(role, member)}`,
  };
}

export function removalForms(role: string, member: Member): Forms {
  return {
    sql: `REVOKE ROLE ${quoted(role)} FROM ${member.kind.toUpperCase()} ${quoted(member.name)};`,
    curl: curl("DELETE", memberPath(role, member)),
    leat: `leat role remove-member ${leatMember(role, member)}`,
  };
}

export type NewToken = {
  name: string;
  account: string;
  role: string;
  scope: "read" | "write" | "admin";
  days: number;
  comment: string;
};

/** The members of a token that were given, as the API has them. */
export function tokenBody({ account, role, scope, days, comment }: NewToken): Record<string, string | number> {
  const given = { account, role, scope, lifetime_days: days, comment };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== ""));
}

export function tokenForms(token: NewToken): Forms {
  const { name, account, role, scope, days, comment } = token;
  const properties = [
    account && `'account' = ${text(account)}`,
    role && `'role' = ${text(role)}`,
    `'scope' = '${scope}'`,
    `'lifetime.days' = ${days}`,
  ].filter(Boolean);
  const note = comment ? ` COMMENT ${text(comment)}` : "";
  const flags = [
    account && ` --account ${shell(account)}`,
    role && ` --role ${shell(role)}`,
    ` --scope ${scope} --days ${days}`,
    comment && ` --comment ${shell(comment)}`,
  ].filter(Boolean);
  return {
    sql: `CREATE API_TOKEN ${quoted(name)}${note} WITH (${properties.join(", ")});`,
    terraform: resource("token", name, { name, account, role, token_scope: scope, lifetime_days: days, comment }),
    curl: curl("POST", tokenPath(name), tokenBody(token)),
    leat: `leat api-token create ${shell(quoted(name))}${flags.join("")}`,
  };
}

export function revocationForms(name: string): Forms {
  return {
    sql: `DROP API_TOKEN ${quoted(name)};`,
    curl: curl("DELETE", tokenPath(name)),
    leat: `leat api-token delete ${shell(quoted(name))}`,
  };
}

export function rotationForms(name: string, minutes: number): Forms {
  return {
    curl: curl("POST", `${tokenPath(name)}:rotate`, { grace_minutes: minutes }),
    leat: `leat api-token rotate ${shell(quoted(name))} --grace-minutes ${minutes}`,
  };
}
