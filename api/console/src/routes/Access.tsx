import { useNavigate, useSearch } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { ServiceAccounts, Users } from "../access/Accounts";
import { Audit } from "../access/Audit";
import { Me } from "../access/Me";
import { Roles } from "../access/Roles";
import { Tokens } from "../access/Tokens";
import { Page } from "../parts/Page";
import { type Panels, PanelTabs } from "../parts/Panels";

const PANELS: Panels = {
  you: ["You", Me],
  roles: ["Roles", Roles],
  users: ["Users", Users],
  services: ["Service accounts", ServiceAccounts],
  tokens: ["Tokens", Tokens],
  audit: ["Audit log", Audit],
};

/** Who may do what: the caller, roles, accounts, tokens, and what has happened. */
export function Access(): ReactNode {
  const { tab } = useSearch({ from: "/inside/access" });
  const navigate = useNavigate({ from: "/access" });
  return (
    <Page title="Access">
      <PanelTabs
        panels={PANELS}
        chosen={tab}
        first="you"
        // A filter of one list means nothing in another.
        choose={(value) => void navigate({ search: { tab: value }, replace: true })}
      />
    </Page>
  );
}
