import { Tabs } from "@mantine/core";
import { useNavigate, useSearch } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { ServiceAccounts, Users } from "../access/Accounts";
import { Audit } from "../access/Audit";
import { Me } from "../access/Me";
import { Roles } from "../access/Roles";
import { Tokens } from "../access/Tokens";
import { Page } from "../parts/Page";

const TABS: Record<string, readonly [string, () => ReactNode]> = {
  you: ["You", Me],
  roles: ["Roles", Roles],
  users: ["Users", Users],
  services: ["Service accounts", ServiceAccounts],
  tokens: ["Tokens", Tokens],
  audit: ["Audit log", Audit],
};

/** Who may do what: the caller, roles, accounts, tokens, and what has happened. */
export function Access(): ReactNode {
  const { tab = "you" } = useSearch({ from: "/inside/access" });
  const navigate = useNavigate({ from: "/access" });
  return (
    <Page title="Access">
      <Tabs
        value={tab in TABS ? tab : "you"}
        keepMounted={false}
        // A filter of one list means nothing in another.
        onChange={(value) => void navigate({ search: { tab: value ?? undefined }, replace: true })}
      >
        <Tabs.List mb="sm">
          {Object.entries(TABS).map(([name, [label]]) => (
            <Tabs.Tab key={name} value={name}>
              {label}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {Object.entries(TABS).map(([name, [, Panel]]) => (
          <Tabs.Panel key={name} value={name}>
            <Panel />
          </Tabs.Panel>
        ))}
      </Tabs>
    </Page>
  );
}
