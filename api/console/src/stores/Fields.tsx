import { Fieldset, NativeSelect, PasswordInput, Stack, Switch, Text, Textarea, TextInput } from "@mantine/core";
import { Fragment, type ReactNode } from "react";
import { type Draft, type Field, labelOf } from "./fields";

type Props = {
  fields: readonly Field[];
  draft: Draft;
  change: (more: Partial<Draft>) => void;
  /** What the server says against a field, by its pointer. */
  faults: Readonly<Record<string, string>>;
  /** Names that a field may hold, by its pointer. */
  offers?: Readonly<Record<string, readonly string[]>>;
  /** Whether the object exists, so that an empty secret keeps the stored one. */
  stored?: boolean;
};

/** The inputs of a form that is made of a schema. */
export function Fields(props: Props): ReactNode {
  return props.fields.map((field) =>
    field.shape === "group" ? (
      <Group key={field.pointer} {...props} field={field} />
    ) : (
      <Input key={field.pointer} {...props} field={field} />
    ),
  );
}

/** Settings that belong together; optional ones are shown when they are wanted. */
function Group({ field, ...props }: Props & { field: Field }): ReactNode {
  const { draft, change, faults } = props;
  const { pointer, required } = field;
  const open = required || (draft.open[pointer] ?? false);
  return (
    <Stack gap="xs">
      {!required && (
        <Switch
          label={labelOf(field.name)}
          description={<Help text={field.help} />}
          error={faults[pointer]}
          checked={open}
          onChange={(event) => change({ open: { ...draft.open, [pointer]: event.currentTarget.checked } })}
        />
      )}
      {open && (
        <Fieldset legend={labelOf(field.name)}>
          <Stack gap="sm">
            <Fields {...props} fields={field.fields} />
          </Stack>
        </Fieldset>
      )}
    </Stack>
  );
}

function Input({ field, draft, change, faults, offers, stored }: Props & { field: Field }): ReactNode {
  const { pointer, shape, secret, required, choices } = field;
  const set = (event: { currentTarget: { value: string } }): void =>
    change({ values: { ...draft.values, [pointer]: event.currentTarget.value } });
  const example = field.example && `such as ${field.example}`;
  // Of a new object nothing is stored.
  const help = secret && !stored ? field.help.replace(/; left out = .*$/, ".") : field.help;
  const common = {
    label: labelOf(field.name),
    description: <Help text={help} />,
    withAsterisk: required,
    "aria-required": required || undefined,
    error: faults[pointer],
    value: draft.values[pointer] ?? "",
    onChange: set,
    placeholder: secret && stored ? "unchanged" : example,
    autoComplete: "off",
    spellCheck: false,
  };
  if (shape === "choice" || shape === "boolean") {
    const none = { value: "", label: required ? "" : "default" };
    const words = shape === "choice" ? choices : ["true", "false"];
    return <NativeSelect {...common} data={[none, ...words.map((value) => ({ value, label: value }))]} />;
  }
  if (shape === "lines" || shape === "list" || shape === "map") {
    const form = { list: "One a line.", map: "One a line: name=value.", lines: undefined }[shape];
    return (
      <Textarea
        {...common}
        description={<Help text={[help, form].filter(Boolean).join(" ")} />}
        autosize
        minRows={2}
        maxRows={8}
        // A password's input has one line; a key has many.
        classNames={secret ? { input: "masked" } : {}}
      />
    );
  }
  if (secret) {
    return (
      <PasswordInput
        {...common}
        // The browser's own store of passwords must not offer to keep it.
        autoComplete="new-password"
        visibilityToggleButtonProps={{ "aria-label": `Show ${labelOf(field.name).toLowerCase()}` }}
      />
    );
  }
  const names = offers?.[pointer];
  return (
    <>
      <TextInput
        {...common}
        inputMode={shape === "number" ? "numeric" : undefined}
        list={names && `names ${pointer}`}
      />
      {names && (
        <datalist id={`names ${pointer}`}>
          {names.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
      )}
    </>
  );
}

/** A description, whose words in backticks are code. */
function Help({ text }: { text: string }): ReactNode {
  return text.split("`").map((part, index) => (
    <Fragment key={index}>
      {index % 2 === 1 ? (
        <Text span inherit className="mono">
          {part}
        </Text>
      ) : (
        part
      )}
    </Fragment>
  ));
}
