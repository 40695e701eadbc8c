import { Tabs } from "@mantine/core";
import type { ReactNode } from "react";

/** Labels and contents of tabs, by what the address calls each. */
export type Panels = Readonly<Record<string, readonly [string, () => ReactNode]>>;
type Props = { panels: Panels; chosen: string | undefined; first: string; choose: (tab: string | undefined) => void };

/** Tabs of which the address holds the chosen one; `first` is shown without one. */
export function PanelTabs({ panels, chosen, first, choose }: Props): ReactNode {
  return (
    <Tabs
      value={chosen !== undefined && Object.hasOwn(panels, chosen) ? chosen : first}
      keepMounted={false}
      onChange={(value) => choose(value ?? undefined)}
    >
      <Tabs.List mb="sm">
        {Object.entries(panels).map(([name, [label]]) => (
          <Tabs.Tab key={name} value={name}>
            {label}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      {Object.entries(panels).map(([name, [, Panel]]) => (
        <Tabs.Panel key={name} value={name}>
          <Panel />
        </Tabs.Panel>
      ))}
    </Tabs>
  );
}
