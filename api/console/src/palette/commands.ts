import { snippets } from "../about/snippets";
import { PLACES } from "../parts/places";

type Commands = {
  go: (to: string, given?: { params?: object | undefined; search?: object | undefined }) => void;
  copy: (text: string) => void;
  newQuery: () => void;
  switchScheme: () => void;
  signOut: () => void;
};
export type Command = { id: string; group: string; label: string; note?: string; words?: string; run: () => void };

const TABS: readonly [string, string, string][] = [
  ["Access: tokens", "/access", "tokens"],
  ["Access: roles", "/access", "roles"],
  ["Access: audit log", "/access", "audit"],
  ["About: drivers", "/about", "drivers"],
  ["About: store kinds", "/about", "stores"],
  ["About: connect", "/about", "connect"],
];

/** What the palette offers before anything is typed: every screen, and what can be done. */
export function commands(does: Commands): Command[] {
  const screens = PLACES.flatMap(([group, places]) =>
    places.map(
      ({ to, label }): Command => ({ id: `go ${to}`, group: "Screens", label, note: group, run: () => does.go(to) }),
    ),
  );
  const tabs = TABS.map(
    ([label, to, tab]): Command => ({
      id: `go ${to} ${tab}`,
      group: "Screens",
      label,
      run: () => does.go(to, { search: { tab } }),
    }),
  );
  const copies = Object.entries(snippets(window.location.origin)).map(
    ([name, text]): Command => ({
      id: `copy ${name}`,
      group: "Copy to the clipboard",
      label: `Connect with ${name}`,
      words: "copy snippet",
      run: () => does.copy(text),
    }),
  );
  return [
    {
      id: "new query",
      group: "Actions",
      label: "New query",
      words: "write sql statement create",
      run: does.newQuery,
    },
    {
      id: "new store",
      group: "Actions",
      label: "New store",
      words: "connect create",
      run: () => does.go("/new-store"),
    },
    {
      id: "new function",
      group: "Actions",
      label: "New function",
      words: "python create",
      run: () => does.go("/new-function"),
    },
    {
      id: "scheme",
      group: "Actions",
      label: "Switch light and dark colours",
      words: "theme",
      run: does.switchScheme,
    },
    {
      id: "reference",
      group: "Actions",
      label: "Open the API reference",
      words: "docs rest openapi",
      run: () => window.location.assign("/docs"),
    },
    { id: "sign out", group: "Actions", label: "Sign out", words: "log out leave", run: does.signOut },
    ...screens,
    ...tabs,
    ...copies,
  ];
}

/** The commands that hold every word of the text; those that begin with it come first. */
export function fitting(all: readonly Command[], text: string): Command[] {
  const wanted = text.toLowerCase().split(/\s+/).filter(Boolean);
  const rank = ({ label }: Command): number => (label.toLowerCase().startsWith(wanted.join(" ")) ? 0 : 1);
  return all
    .filter(({ label, words = "", note = "" }) => {
      const held = `${label} ${words} ${note}`.toLowerCase();
      return wanted.every((word) => held.includes(word));
    })
    .sort((a, b) => rank(a) - rank(b));
}
