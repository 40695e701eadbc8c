import { Anchor, Stack, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { ObjectLink } from "../lineage/ObjectLink";
import { Section } from "../parts/Page";
import { State } from "../parts/State";
import { age, localTime } from "../parts/time";
import { type Change, useChanges, useFeedState } from "./feed";

const SHOWN = 12;

/** What has happened lately to the objects that the account sees. */
export function Newest(): ReactNode {
  const changes = useChanges();
  const state = useFeedState();
  return (
    <Section title="Newest events">
      {changes.length === 0 && (
        <Text size="sm" c="dimmed">
          {state === "live" ? "Nothing has happened in the last week." : "Not known yet."}
        </Text>
      )}
      <ul className="events">
        {changes.slice(0, SHOWN).map((change) => (
          <li key={change.id}>
            <One change={change} />
          </li>
        ))}
      </ul>
    </Section>
  );
}

function One({ change }: { change: Change }): ReactNode {
  const { type, state, error, message } = change;
  return (
    <Stack gap={0}>
      <div className="event">
        <State state={type === "state" && state ? state : type} />
        <Text size="xs" c="dimmed" title={localTime(change.at)} className="when">
          {age(change.at)} ago
        </Text>
      </div>
      <div className="what">
        <Text size="xs" c="dimmed" component="span">
          {change.kind.replaceAll("_", " ")}{" "}
        </Text>
        <Name change={change} />
      </div>
      {(error ?? message) && (
        <Text size="xs" lineClamp={2} className="break" title={message ?? undefined}>
          {message ?? error}
        </Text>
      )}
    </Stack>
  );
}

function Name({ change: { kind, name, type } }: { change: Change }): ReactNode {
  const look = { size: "sm", title: name } as const;
  if (type !== "deleted") {
    if (kind === "query" || kind === "relation" || kind === "store") {
      return <ObjectLink node={{ kind, name }} />;
    }
    if (kind === "role") {
      return (
        <Anchor component={Link} to="/access/roles/$role" params={{ role: name } as never} {...look}>
          {name}
        </Anchor>
      );
    }
  }
  return (
    <Text component="span" {...look}>
      {name}
    </Text>
  );
}
