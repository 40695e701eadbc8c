import { Anchor, Text } from "@mantine/core";
import {
  createRootRoute,
  createRoute,
  createRouter,
  Link,
  lazyRouteComponent,
  Outlet,
  redirect,
} from "@tanstack/react-router";
import { isSignedIn, wasSignedIn } from "./api/session";
import { onTokenChange } from "./api/token";
import { Page } from "./parts/Page";
import { Problem } from "./parts/Problem";
import { Waiting } from "./parts/Rows";
import { Shell } from "./parts/Shell";

type Search = Record<string, unknown>;
// Addresses hold JSON: a text of digits that a person has typed arrives as a number.
const text = (value: unknown): string | undefined =>
  ["string", "number", "boolean"].includes(typeof value) && value !== "" ? String(value) : undefined;

/** Reads the named members of an address as texts; others are dropped. */
function texts<K extends string>(...names: K[]): (search: Search) => { [N in K]?: string } {
  return (search) => {
    const found: { [N in K]?: string } = {};
    for (const name of names) {
      const value = text(search[name]);
      if (value !== undefined) found[name] = value;
    }
    return found;
  };
}

const root = createRootRoute({ component: Outlet, notFoundComponent: NotFound });
const signIn = createRoute({
  getParentRoute: () => root,
  path: "/sign-in",
  validateSearch: (search: Search): { next?: string; failed?: string } => {
    // Only pages of this application: an address from outside must not lead elsewhere.
    const next = text(search.next);
    return { ...texts("failed")(search), ...(next !== undefined && /^\/(?![/\\])/.test(next) ? { next } : {}) };
  },
  component: lazyRouteComponent(() => import("./routes/SignIn"), "SignIn"),
});
const invitation = createRoute({
  getParentRoute: () => root,
  path: "/invitation",
  component: lazyRouteComponent(() => import("./routes/Invitation"), "Invitation"),
});
const inside = createRoute({
  getParentRoute: () => root,
  id: "inside",
  beforeLoad: async ({ location }) => {
    if (!(await isSignedIn())) throw redirect({ to: "/sign-in", search: { next: location.href } });
  },
  component: Shell,
});
const within = { getParentRoute: () => inside } as const;

const home = createRoute({
  ...within,
  path: "/",
  validateSearch: texts("at"),
  component: lazyRouteComponent(() => import("./routes/Home"), "Home"),
});
const sql = createRoute({
  ...within,
  path: "/sql",
  validateSearch: texts("database", "schema", "store", "tab"),
  component: lazyRouteComponent(() => import("./routes/Sql"), "Sql"),
});
const stores = createRoute({
  ...within,
  path: "/stores",
  component: lazyRouteComponent(() => import("./routes/Stores"), "Stores"),
});
const store = createRoute({
  ...within,
  path: "/stores/$store",
  component: lazyRouteComponent(() => import("./routes/Store"), "Store"),
});
const newStore = createRoute({
  ...within,
  path: "/new-store",
  validateSearch: texts("kind"),
  component: lazyRouteComponent(() => import("./routes/NewStore"), "NewStore"),
});
const changeStore = createRoute({
  ...within,
  path: "/stores/$store/change",
  component: lazyRouteComponent(() => import("./routes/NewStore"), "ChangeStore"),
});
const entity = createRoute({
  ...within,
  path: "/stores/$store/entities/$entity",
  validateSearch: texts("from", "q", "since", "partition", "offset"),
  component: lazyRouteComponent(() => import("./routes/Entity"), "Entity"),
});
const catalog = createRoute({
  ...within,
  path: "/catalog",
  validateSearch: texts("database", "schema"),
  component: lazyRouteComponent(() => import("./routes/Catalog"), "Catalog"),
});
const relation = createRoute({
  ...within,
  path: "/relations/$relation",
  validateSearch: texts("tab"),
  component: lazyRouteComponent(() => import("./routes/Relation"), "Relation"),
});
const registries = createRoute({
  ...within,
  path: "/schema-registries",
  component: lazyRouteComponent(() => import("./routes/Registries"), "Registries"),
});
const registry = createRoute({
  ...within,
  path: "/schema-registries/$registry",
  validateSearch: texts("q", "subject", "version"),
  component: lazyRouteComponent(() => import("./routes/Registry"), "Registry"),
});
const queries = createRoute({
  ...within,
  path: "/queries",
  validateSearch: texts("state", "q", "application"),
  component: lazyRouteComponent(() => import("./routes/Queries"), "Queries"),
});
const query = createRoute({
  ...within,
  path: "/queries/$query",
  validateSearch: texts("tab", "span"),
  component: lazyRouteComponent(() => import("./routes/Query"), "Query"),
});
const lineage = createRoute({
  ...within,
  path: "/lineage",
  validateSearch: (search: Search): { root?: string; depth?: number; more?: string[] } => {
    const depth = Number(search.depth);
    const more = Array.isArray(search.more) ? search.more.filter((one) => typeof one === "string") : [];
    return {
      ...texts("root")(search),
      ...(Number.isInteger(depth) && depth >= 1 && depth <= 100 ? { depth } : {}),
      ...(more.length > 0 ? { more: more.slice(0, 50) } : {}),
    };
  },
  component: lazyRouteComponent(() => import("./routes/Lineage"), "Lineage"),
});
const access = createRoute({
  ...within,
  path: "/access",
  validateSearch: texts("tab", "q", "view", "account", "operation", "kind", "outcome", "since", "until"),
  component: lazyRouteComponent(() => import("./routes/Access"), "Access"),
});
const role = createRoute({
  ...within,
  path: "/access/roles/$role",
  component: lazyRouteComponent(() => import("./routes/Role"), "Role"),
});

const functions = createRoute({
  ...within,
  path: "/functions",
  validateSearch: texts("tab", "q"),
  component: lazyRouteComponent(() => import("./routes/Functions"), "Functions"),
});
const newFunction = createRoute({
  ...within,
  path: "/new-function",
  component: lazyRouteComponent(() => import("./routes/NewFunction"), "NewFunction"),
});
const oneFunction = createRoute({
  ...within,
  path: "/functions/$function",
  component: lazyRouteComponent(() => import("./routes/Function"), "OneFunction"),
});
const secrets = createRoute({
  ...within,
  path: "/secrets",
  validateSearch: texts("q"),
  component: lazyRouteComponent(() => import("./routes/Secrets"), "Secrets"),
});
const secret = createRoute({
  ...within,
  path: "/secrets/$secret",
  component: lazyRouteComponent(() => import("./routes/Secret"), "Secret"),
});
const applications = createRoute({
  ...within,
  path: "/applications",
  validateSearch: texts("state", "q"),
  component: lazyRouteComponent(() => import("./routes/Applications"), "Applications"),
});
const application = createRoute({
  ...within,
  path: "/applications/$application",
  component: lazyRouteComponent(() => import("./routes/Application"), "Application"),
});
const about = createRoute({
  ...within,
  path: "/about",
  validateSearch: texts("tab"),
  component: lazyRouteComponent(() => import("./routes/About"), "About"),
});
const screens = [functions, newFunction, oneFunction, secrets, secret, applications, application, about] as const;
const storeScreens = [stores, newStore, store, changeStore, entity] as const;

export const router = createRouter({
  routeTree: root.addChildren([
    signIn,
    invitation,
    inside.addChildren([
      ...[home, sql, ...storeScreens, catalog, relation, registries, registry],
      ...[queries, query, lineage, access, role, ...screens],
    ]),
  ]),
  basepath: "/ui",
  defaultPendingComponent: Waiting,
  defaultErrorComponent: ({ error }) => <Problem error={error} title="This page has failed" />,
  scrollRestoration: true,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}

// After a sign-out or a refused call the page gives way to the sign-in, and comes back after it.
onTokenChange(() => {
  if (!wasSignedIn() && router.state.location.pathname !== "/sign-in") {
    void router.navigate({ to: "/sign-in", search: { next: router.state.location.href } });
  }
});

function NotFound(): React.ReactNode {
  return (
    <main className="alone">
      <Page title="There is no such page">
        <Text>
          The address may be of another version of leatstream.{" "}
          <Anchor component={Link} to="/" inherit underline="always">
            Back to the flow
          </Anchor>
        </Text>
      </Page>
    </main>
  );
}
