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
import { onTokenChange, readToken } from "./api/token";
import { Page } from "./parts/Page";
import { Problem } from "./parts/Problem";
import { Waiting } from "./parts/Rows";
import { Shell } from "./parts/Shell";
import { SignIn } from "./routes/SignIn";

type Search = Record<string, unknown>;
const text = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined);

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
  validateSearch: (search: Search): { next?: string } => {
    // Only pages of this application: an address from outside must not lead elsewhere.
    const next = text(search.next);
    return next !== undefined && /^\/(?![/\\])/.test(next) ? { next } : {};
  },
  component: SignIn,
});
const inside = createRoute({
  getParentRoute: () => root,
  id: "inside",
  beforeLoad: ({ location }) => {
    if (readToken() === null) throw redirect({ to: "/sign-in", search: { next: location.href } });
  },
  component: Shell,
});
const within = { getParentRoute: () => inside } as const;

const home = createRoute({
  ...within,
  path: "/",
  component: lazyRouteComponent(() => import("./routes/Home"), "Home"),
});
const sql = createRoute({
  ...within,
  path: "/sql",
  validateSearch: texts("database", "schema", "store", "tab", "open"),
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
const entity = createRoute({
  ...within,
  path: "/stores/$store/entities/$entity",
  validateSearch: texts("from", "q"),
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
  component: lazyRouteComponent(() => import("./routes/Relation"), "Relation"),
});
const queries = createRoute({
  ...within,
  path: "/queries",
  validateSearch: texts("state", "q"),
  component: lazyRouteComponent(() => import("./routes/Queries"), "Queries"),
});
const query = createRoute({
  ...within,
  path: "/queries/$query",
  validateSearch: texts("tab"),
  component: lazyRouteComponent(() => import("./routes/Query"), "Query"),
});

export const router = createRouter({
  routeTree: root.addChildren([
    signIn,
    inside.addChildren([home, sql, stores, store, entity, catalog, relation, queries, query]),
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

// Whoever forgets the token, the button or a refused call: its page gives way to the sign-in, and comes back after.
onTokenChange(() => {
  if (readToken() === null && router.state.location.pathname !== "/sign-in") {
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
