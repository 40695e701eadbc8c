import { Modal, Text, TextInput, useComputedColorScheme, useMantineColorScheme } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { IconSearch } from "@tabler/icons-react";
import { useNavigate } from "@tanstack/react-router";
import { type KeyboardEvent, type ReactNode, useEffect, useMemo, useState } from "react";
import { signOut } from "../api/session";
import { copy } from "../parts/clipboard";
import { openText } from "../sql/drafts";
import { type Command, commands, fitting } from "./commands";
import { List, optionId } from "./List";
import { useObjects } from "./objects";

const PAUSE_MS = 200;
const LISTBOX = "palette-list";

/** Every screen, every object by its name, and what can be done, without the mouse. */
export default function Palette({ opened, close }: { opened: boolean; close: () => void }): ReactNode {
  // What is gone to takes the focus itself.
  const [went, setWent] = useState(false);
  useEffect(() => {
    if (opened) setWent(false);
  }, [opened]);
  const leave = (): void => {
    setWent(true);
    close();
  };
  return (
    <Modal.Root
      opened={opened}
      onClose={close}
      size="lg"
      yOffset="12vh"
      returnFocus={!went}
      transitionProps={{ duration: 0 }}
    >
      <Modal.Overlay />
      <Modal.Content aria-label="Search and commands">
        <Modal.Body p={0}>
          <Choice close={close} leave={leave} />
        </Modal.Body>
      </Modal.Content>
    </Modal.Root>
  );
}

function Choice({ close, leave }: { close: () => void; leave: () => void }): ReactNode {
  const [text, setText] = useState("");
  const [chosen, choose] = useState<string>();
  const [said, say] = useState("");
  const all = useCommands(leave, say);
  const [q] = useDebouncedValue(text.trim(), PAUSE_MS);
  const found = useObjects(q);
  const navigate = useNavigate();
  const objects = useMemo(
    () =>
      (text.trim() === "" ? [] : (found.data?.items ?? [])).map(
        ({ kind, name, to, params, search }): Command => ({
          id: `${kind} ${name}`,
          group: "Objects",
          label: name,
          note: kind,
          run: () => {
            leave();
            void navigate({ to, params, search } as never);
          },
        }),
      ),
    [found.data, text, leave, navigate],
  );
  // A screen whose name begins with the text is meant rather than an object that holds it.
  const items = [...fitting(all, text.trim()), ...objects];
  const active = items.find(({ id }) => id === chosen) ?? items[0];
  const waits = text.trim() !== "" && (found.isFetching || q !== text.trim());
  const onKey = (event: KeyboardEvent): void => {
    const at = active === undefined ? -1 : items.indexOf(active);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + 8, PageUp: at - 8 }[event.key];
    if (next !== undefined && items.length > 0) {
      event.preventDefault();
      const single = Math.abs(next - at) === 1;
      const place = single ? (next + items.length) % items.length : Math.min(Math.max(next, 0), items.length - 1);
      choose(items[place]?.id);
    } else if (event.key === "Enter" && !event.nativeEvent.isComposing) {
      event.preventDefault();
      active?.run();
    } else if (event.key === "Escape") close();
  };
  return (
    <>
      <TextInput
        className="palette-text"
        variant="unstyled"
        size="md"
        leftSection={<IconSearch size={17} aria-hidden />}
        leftSectionWidth={46}
        placeholder="Screen, object or command"
        aria-label="Screen, object or command"
        role="combobox"
        aria-expanded={items.length > 0}
        aria-controls={LISTBOX}
        aria-autocomplete="list"
        aria-activedescendant={active && optionId(active.id)}
        data-autofocus
        autoComplete="off"
        spellCheck={false}
        value={text}
        onChange={(event) => {
          setText(event.currentTarget.value);
          choose(undefined);
          say("");
        }}
        onKeyDown={onKey}
      />
      <List id={LISTBOX} items={items} active={active?.id} choose={choose} />
      <Text size="xs" c="dimmed" className="palette-foot" component="div">
        <span role="status">{said || status(items.length, waits, found.data?.failed ?? 0)}</span>
        <span className="palette-keys">↑ ↓ choose · Enter open · Esc close</span>
      </Text>
    </>
  );
}

function status(count: number, waits: boolean, failed: number): string {
  if (waits) return "Searching…";
  const missing = failed > 0 ? ", some kinds could not be searched" : "";
  return count === 0 ? `Nothing has this name${missing}` : `${count} found${missing}`;
}

function useCommands(leave: () => void, say: (said: string) => void): Command[] {
  const navigate = useNavigate();
  const { setColorScheme } = useMantineColorScheme();
  const scheme = useComputedColorScheme("light");
  return commands({
    go: (to, given) => {
      leave();
      void navigate({ to, ...given } as never);
    },
    copy: (text) => void copy(text).then((done) => say(done ? "Copied" : "The browser does not allow it: see About")),
    newQuery: () => {
      leave();
      openText("");
      void navigate({ to: "/sql" });
    },
    switchScheme: () => setColorScheme(scheme === "dark" ? "light" : "dark"),
    signOut: () => void signOut().then(leave, () => say("You are still signed in: the server did not answer")),
  });
}
