import { Badge, Group, Text, Tooltip } from "@mantine/core";
import type { ReactNode } from "react";
import type { Schemas } from "../api/problem";

const ORIGINS: Record<Schemas["Origin"], [string, string]> = {
  explicit: ["explicit", "Written in the statement."],
  existing_entity: ["existing entity", "Read from the topic or table that exists already."],
  left_most_source: ["left-most source", "Inferred from the left-most source of the statement."],
  session: ["session", "From the context of the session."],
  default: ["default", "The server's default."],
};

/** Which rule gave a property's value, and from which object. */
export function Origin({ origin, from }: { origin: Schemas["Origin"]; from?: string | null }): ReactNode {
  const [name, meaning] = ORIGINS[origin];
  return (
    <Group gap="2px 6px">
      <Tooltip label={meaning} events={{ hover: true, focus: true, touch: true }}>
        <Badge
          className="origin"
          data-origin={origin}
          variant="default"
          tt="none"
          fw={500}
          tabIndex={0}
          miw="fit-content"
        >
          {name}
        </Badge>
      </Tooltip>
      {from && (
        <Text size="xs" c="dimmed" className="break">
          {from}
        </Text>
      )}
    </Group>
  );
}
