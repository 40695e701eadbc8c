import {
  ActionIcon,
  Anchor,
  AppShell,
  Burger,
  Group,
  NavLink,
  Text,
  useComputedColorScheme,
  useMantineColorScheme,
} from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconLogout, IconMoon, IconSearch, IconSun } from "@tabler/icons-react";
import { useMutation, useQuery } from "@tanstack/react-query";
import { Link, Outlet, useLocation } from "@tanstack/react-router";
import { lazy, type ReactNode, Suspense, useEffect, useState } from "react";
import { api, dataOf } from "../api/client";
import { signOut } from "../api/session";
import { Live } from "../events/Live";
import { useFeed } from "../events/useFeed";
import { Boundary } from "./Boundary";
import { Problem } from "./Problem";
import { PLACES } from "./places";

// Most visits never open it.
const Palette = lazy(() => import("../palette/Palette"));

const MOD = /Mac|iPhone|iPad/.test(navigator.userAgent) ? "⌘" : "Ctrl";

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
          <Group gap={6} wrap="nowrap">
            <Search />
            <Anchor href="/docs" size="sm" c="dimmed" mx="xs" visibleFrom="xs">
              API reference
            </Anchor>
            <Live />
            <SchemeButton />
            <ActionIcon
              variant="subtle"
              color="gray"
              onClick={() => leave.mutate()}
              title="Sign out"
              aria-label="Sign out"
            >
              <IconLogout size={18} aria-hidden />
            </ActionIcon>
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
        <Anchor href="/docs" size="sm" px={12} py={6} hiddenFrom="xs">
          API reference
        </Anchor>
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
  const other = { "/catalog": "/relations", "/functions": "/new-function", "/stores": "/new-store" }[place];
  return pathname.startsWith(place) || (other !== undefined && pathname.startsWith(other));
}

/** The way to the palette, by Ctrl-K too. Once loaded it stays, so that it opens at once. */
function Search(): ReactNode {
  const [opened, { open, close, toggle }] = useDisclosure(false);
  const [wanted, setWanted] = useState(false);
  const show = (turn: () => void): void => {
    setWanted(true);
    turn();
  };
  // In the editor and in fields too.
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey)
        return;
      event.preventDefault();
      setWanted(true);
      toggle();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [toggle]);
  return (
    <>
      {/* Plain elements: what the first page loads is bounded. */}
      <button
        type="button"
        className="search"
        aria-keyshortcuts="Control+K Meta+K"
        title={`Search: ${MOD} K`}
        onClick={() => show(open)}
      >
        <IconSearch size={15} aria-hidden />
        <span className="search-word">Search</span>
        <kbd>{MOD} K</kbd>
      </button>
      {wanted && (
        <Suspense fallback={null}>
          <Palette opened={opened} close={close} />
        </Suspense>
      )}
    </>
  );
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
    <ActionIcon
      variant="subtle"
      color="gray"
      onClick={() => setColorScheme(next)}
      title={`Use ${next} colours`}
      aria-label={`Use ${next} colours`}
    >
      <Icon size={18} aria-hidden />
    </ActionIcon>
  );
}
