import { Text } from "@mantine/core";
import { type ReactNode, useEffect } from "react";
import type { Command } from "./commands";

/** The id of an option in the page; names may hold anything. */
export const optionId = (id: string): string =>
  `palette ${id}`.replace(/[^\w-]/g, (letter) => `_${letter.charCodeAt(0)}`);

type Props = { id: string; items: readonly Command[]; active: string | undefined; choose: (id: string) => void };

/** The offered commands under the heads of their groups. The keyboard stays in the field above. */
export function List({ id, items, active, choose }: Props): ReactNode {
  useEffect(() => {
    if (active) document.getElementById(optionId(active))?.scrollIntoView({ block: "nearest" });
  }, [active]);
  const groups = [...new Set(items.map(({ group }) => group))];
  return (
    <div id={id} role="listbox" aria-label="Found" className="palette-list">
      {groups.map((group) => (
        // biome-ignore lint/a11y/useSemanticElements: a listbox holds groups of options, not fields
        <div key={group} role="group" aria-label={group}>
          <Text size="xs" c="dimmed" px="md" py={4} aria-hidden>
            {group}
          </Text>
          {items
            .filter((item) => item.group === group)
            .map((item) => (
              // biome-ignore lint/a11y/useKeyWithClickEvents: the field above handles the keys
              // biome-ignore lint/a11y/useFocusableInteractive: an option is pointed at, not focused
              <div
                key={item.id}
                id={optionId(item.id)}
                role="option"
                aria-selected={item.id === active}
                className="palette-option"
                title={item.label}
                // The field keeps the focus.
                onMouseDown={(event) => event.preventDefault()}
                onMouseMove={() => item.id !== active && choose(item.id)}
                onClick={item.run}
              >
                <Text span size="sm" truncate>
                  {item.label}
                </Text>
                {item.note && (
                  <Text span size="xs" c="dimmed" className="whole">
                    {item.note}
                  </Text>
                )}
              </div>
            ))}
        </div>
      ))}
    </div>
  );
}
