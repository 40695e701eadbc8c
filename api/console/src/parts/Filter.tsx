import { Select, TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { type ReactNode, useEffect, useState } from "react";

type Props = { label: string; value: string | undefined; change: (value: string | undefined) => void };
type TextProps = Props & { w?: number; size?: string; type?: string };

/** A field whose text is asked for when the person pauses: each letter alone would be a request. */
export function Filter({ label, value, change, w = 260, ...look }: TextProps): ReactNode {
  const [text, setText] = useState(value ?? "");
  const later = useDebouncedCallback((wanted: string) => change(wanted.trim() || undefined), 300);
  // Back and forward change the address, and so the text.
  useEffect(() => setText((old) => (old.trim() === (value ?? "") ? old : (value ?? ""))), [value]);
  return (
    <TextInput
      aria-label={label}
      placeholder={label}
      w={w}
      maw="100%"
      {...look}
      value={text}
      onChange={(event) => {
        setText(event.currentTarget.value);
        later(event.currentTarget.value);
      }}
    />
  );
}

type ChoiceProps = Props & { values: readonly string[] };

/** One of a few values, or any of them. */
export function Choice({ label, values, value, change }: ChoiceProps): ReactNode {
  return (
    <Select
      aria-label={label}
      placeholder={`Any ${label.toLowerCase()}`}
      data={[...values]}
      value={value ?? null}
      clearable
      w={150}
      onChange={(chosen) => change(chosen ?? undefined)}
    />
  );
}
