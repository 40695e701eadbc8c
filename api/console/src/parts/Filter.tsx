import { Select, TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { type ReactNode, useEffect, useState } from "react";

type Props = { label: string; value: string | undefined; change: (value: string | undefined) => void };
type Look = {
  /** Whether the label is shown above the field, and not in it. */
  above?: boolean;
};
type TextProps = Props & Look & { w?: number; size?: string; type?: string };
const labelled = (label: string, above: boolean | undefined): { label?: string; "aria-label"?: string } =>
  above ? { label } : { "aria-label": label };

/** A field whose text is asked for when the person pauses: each letter alone would be a request. */
export function Filter({ label, value, change, above, w = 260, ...look }: TextProps): ReactNode {
  const [text, setText] = useState(value ?? "");
  const later = useDebouncedCallback((wanted: string) => change(wanted.trim() || undefined), 300);
  // Back and forward change the address, and so the text.
  useEffect(() => setText((old) => (old.trim() === (value ?? "") ? old : (value ?? ""))), [value]);
  return (
    <TextInput
      {...labelled(label, above)}
      placeholder={above ? undefined : label}
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

type ChoiceProps = Props & Look & { values: readonly string[]; words?: (value: string) => string; w?: number };

/** One of a few values, or any of them. */
export function Choice({ label, values, value, change, above, w = 150, words = String }: ChoiceProps): ReactNode {
  return (
    <Select
      {...labelled(label, above)}
      placeholder={above ? "any" : `Any ${label.toLowerCase()}`}
      data={values.map((one) => ({ value: one, label: words(one) }))}
      value={value ?? null}
      clearable
      w={w}
      onChange={(chosen) => change(chosen ?? undefined)}
    />
  );
}
