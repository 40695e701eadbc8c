import { Button, Group, Stack, Text, TextInput, UnstyledButton } from "@mantine/core";
import { type FormEvent, type ReactNode, useState } from "react";
import { localTime } from "../parts/time";
import { type Past, readSaved, save, unsave } from "./drafts";

type HistoryProps = { past: readonly Past[]; choose: (text: string) => void; clear: () => void };

/** What was run from this browser. */
export function History({ past, choose, clear }: HistoryProps): ReactNode {
  if (past.length === 0) {
    return <Text size="sm">What you run is kept in this browser, except statements that may hold secrets.</Text>;
  }
  return (
    <>
      {past.map((one) => (
        <UnstyledButton key={one.at} className="past" onClick={() => choose(one.sql)}>
          <Text size="xs" c="dimmed">
            {localTime(one.at)}
            {one.failed && ", failed"}
          </Text>
          <Text className="mono" lineClamp={2}>
            {one.sql}
          </Text>
        </UnstyledButton>
      ))}
      <Button size="xs" variant="default" mt="sm" onClick={clear}>
        Forget the history
      </Button>
    </>
  );
}

type TextsProps = { text: string; choose: (text: string) => void };

/** Texts with a name, to come back to. They stay in this browser. */
export function Texts({ text, choose }: TextsProps): ReactNode {
  const [saved, setSaved] = useState(readSaved);
  const [name, setName] = useState("");
  const [fault, setFault] = useState<string>();
  const known = saved.some((one) => one.name === name.trim());
  const keep = (event: FormEvent): void => {
    event.preventDefault();
    setFault(save(name.trim(), text));
    setSaved(readSaved());
  };
  return (
    <Stack gap="sm">
      <form onSubmit={keep}>
        <Group gap="xs" align="flex-start">
          <TextInput
            size="xs"
            w={260}
            aria-label="Name of the text"
            placeholder="Name of the text"
            value={name}
            error={fault}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <Button type="submit" size="xs" variant="default" disabled={name.trim() === "" || text.trim() === ""}>
            {known ? "Save in its place" : "Save the text"}
          </Button>
        </Group>
      </form>
      {saved.length === 0 && (
        <Text size="sm">Saved texts stay in this browser. Those that may hold secrets are not saved.</Text>
      )}
      {saved.map((one) => (
        <Group key={one.name} gap="xs" wrap="nowrap" align="flex-start">
          <UnstyledButton
            className="past"
            onClick={() => {
              setName(one.name);
              choose(one.sql);
            }}
          >
            <Text size="sm" fw={600}>
              {one.name}
            </Text>
            <Text className="mono" lineClamp={2}>
              {one.sql}
            </Text>
          </UnstyledButton>
          <Button
            size="compact-sm"
            variant="default"
            className="whole"
            aria-label={`Forget the text ${one.name}`}
            onClick={() => {
              unsave(one.name);
              setSaved(readSaved());
            }}
          >
            Forget
          </Button>
        </Group>
      ))}
    </Stack>
  );
}
