import {
  ActionIcon,
  Anchor,
  AppShell,
  Burger,
  Group,
  NavLink,
  Text,
  Tooltip,
  useComputedColorScheme,
  useMantineColorScheme,
} from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import {
  IconDatabase,
  IconFileCode,
  IconInfoCircle,
  IconKey,
  IconLogout,
  IconMathFunction,
  IconMoon,
  IconPlayerPlay,
  IconRouteAltLeft,
  IconServer,
  IconShieldLock,
  IconStack2,
  IconSun,
  IconTerminal2,
  IconTopologyStar3,
} from "@tabler/icons-react";
import { useMutation, useQuery } from "@tanstack/react-query";
import { Link, Outlet, useLocation } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { api, dataOf } from "../api/client";
import { signOut } from "../api/session";
import { Live } from "../events/Live";
import { useFeed } from "../events/useFeed";
import { Boundary } from "./Boundary";
import { Problem } from "./Problem";

const PLACES = [
  [
    "Flows",
    [
      { to: "/", label: "Flow", icon: IconTopologyStar3 },
      { to: "/sql", label: "SQL", icon: IconTerminal2 },
      { to: "/queries", label: "Queries", icon: IconPlayerPlay },
      { to: "/applications", label: "Applications", icon: IconStack2 },
      { to: "/lineage", label: "Lineage", icon: IconRouteAltLeft },
    ],
  ],
  [
    "Objects",
    [
      { to: "/catalog", label: "Catalog", icon: IconDatabase },
      { to: "/stores", label: "Stores", icon: IconServer },
      { to: "/schema-registries", label: "Schemas", icon: IconFileCode },
      { to: "/functions", label: "Functions", icon: IconMathFunction },
      { to: "/secrets", label: "Secrets", icon: IconKey },
    ],
  ],
  [
    "Server",
    [
      { to: "/access", label: "Access", icon: IconShieldLock },
      { to: "/about", label: "About", icon: IconInfoCircle },
    ],
  ],
] as const;

/** What every page has around it: the way to the others, the colour scheme, sign-out. */
export function Shell(): ReactNode {
  const [open, { toggle, close }] = useDisclosure(false);
  const { pathname } = useLocation();
  const leave = useMutation({ mutationFn: signOut });
  useFeed();
  return (
    <AppShell
      header={{ height: 48 }}
      navbar={{ width: 168, breakpoint: "sm", collapsed: { mobile: !open } }}
      padding="md"
    >
      <a className="skip" href="#content">
        Skip to the content
      </a>
      <AppShell.Header>
        <Group h="100%" px="md" justify="space-between">
          <Group gap="xs">
            <Burger opened={open} onClick={toggle} hiddenFrom="sm" size="sm" aria-label="Navigation" />
            <img src="/ui/icon.svg" width={22} height={22} alt="" />
            <Text fw={700}>leatstream</Text>
            <Version />
          </Group>
          <Group gap={6}>
            <Anchor href="/docs" size="sm" c="dimmed" mr="xs">
              API reference
            </Anchor>
            <Live />
            <SchemeButton />
            <Tooltip label="Sign out">
              <ActionIcon variant="subtle" color="gray" onClick={() => leave.mutate()} aria-label="Sign out">
                <IconLogout size={18} aria-hidden />
              </ActionIcon>
            </Tooltip>
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p={6} aria-label="Main">
        {PLACES.map(([group, places]) => (
          <div key={group} className="places">
            <Text size="xs" c="dimmed" px={12}>
              {group}
            </Text>
            {places.map(({ to, label, icon: Icon }) => (
              <NavLink
                key={to}
                component={Link}
                to={to}
                activeOptions={{ exact: to === "/" }}
                label={label}
                leftSection={<Icon size={17} stroke={1.7} aria-hidden />}
                active={to === "/" ? pathname === "/" : isWithin(pathname, to)}
                onClick={close}
                className="place"
              />
            ))}
          </div>
        ))}
      </AppShell.Navbar>
      <AppShell.Main id="content" tabIndex={-1}>
        {leave.error && <Problem error={leave.error} title="You are still signed in" />}
        <Boundary key={pathname}>
          <Outlet />
        </Boundary>
      </AppShell.Main>
    </AppShell>
  );
}

function isWithin(pathname: string, place: string): boolean {
  const other = { "/catalog": "/relations", "/functions": "/new-function" }[place];
  return pathname.startsWith(place) || (other !== undefined && pathname.startsWith(other));
}

function Version(): ReactNode {
  const server = useQuery({
    queryKey: ["server"],
    queryFn: () => dataOf(api.GET("/v1/server")),
    staleTime: Number.POSITIVE_INFINITY,
  });
  return (
    <Text size="xs" c="dimmed" visibleFrom="xs">
      {server.data?.version}
    </Text>
  );
}

function SchemeButton(): ReactNode {
  const { setColorScheme } = useMantineColorScheme();
  const scheme = useComputedColorScheme("light");
  const next = scheme === "dark" ? "light" : "dark";
  const Icon = next === "dark" ? IconMoon : IconSun;
  return (
    <Tooltip label={`Use ${next} colours`}>
      <ActionIcon
        variant="subtle"
        color="gray"
        onClick={() => setColorScheme(next)}
        aria-label={`Use ${next} colours`}
      >
        <Icon size={18} aria-hidden />
      </ActionIcon>
    </Tooltip>
  );
}
