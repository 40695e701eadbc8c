import { Checkbox, Group, NativeSelect, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { api, dataOf } from "../api/client";
import { quoted } from "../api/names";
import { FormDialog } from "../parts/FormDialog";
import { grantForms } from "./code";
import { type GrantView, type Kind, PRIVILEGES, type Privilege, plural, queryOf } from "./privileges";

const KINDS = Object.keys(PRIVILEGES) as Kind[];
type Which = "one" | "in_schema" | "in_database" | "all";
const EXAMPLES: Partial<Record<Kind, string>> = { schema: "demo.public", relation: "demo.public.pageviews" };
const words = (text: string): string => text.replaceAll("_", " ");

type Given = { on: Kind; privilege: Privilege; which: Which; name: string; entities: string; option: boolean };
const FIRST: Given = { on: "relation", privilege: "select", which: "one", name: "", entities: "", option: false };

/** Which of its objects a kind lets one choose. */
function choices(on: Kind): { value: Which; label: string }[] {
  if (on === "organization") return [];
  const all = words(plural(on));
  return [
    { value: "one" as const, label: `one ${words(on)}` },
    ...(on === "relation" ? [{ value: "in_schema" as const, label: `all ${all} in a schema` }] : []),
    ...(on === "relation" || on === "schema"
      ? [{ value: "in_database" as const, label: `all ${all} in a database` }]
      : []),
    { value: "all" as const, label: `all ${all}` },
  ];
}

/** The grant that the fields mean; undefined while its object has no name. */
function grantOf({ on, privilege, which, name, entities, option }: Given): GrantView | undefined {
  const base = { on, privilege, ...(option ? { grant_option: true } : {}) };
  if (on === "organization" || which === "all") return base;
  if (name === "") return undefined;
  if (which !== "one") return { ...base, [which]: name };
  return { ...base, name, ...(on === "store" && entities !== "" ? { entities } : {}) };
}

type Props = { role: string; close: () => void; done: () => void };

/** Grants one privilege to a role. */
export default function NewGrant({ role, close, done }: Props): ReactNode {
  const [given, setGiven] = useState(FIRST);
  const change = (more: Partial<Given>): void => setGiven((old) => ({ ...old, ...more }));
  const grant = grantOf(given);
  const make = useMutation({
    mutationFn: (one: GrantView) =>
      dataOf(
        api.PUT("/v1/roles/{role}/grants/{privilege}/{on}", {
          params: { path: { role: quoted(role), privilege: one.privilege, on: one.on }, query: queryOf(one) },
          body: { grant_option: one.grant_option ?? null },
        }),
      ),
    onSuccess: () => {
      close();
      done();
    },
  });
  const { on, which } = given;
  const place = which === "in_schema" ? "schema" : which === "in_database" ? "database" : on;
  return (
    <FormDialog
      title={`Grant to role ${role}`}
      opened
      close={close}
      verb="Grant"
      submit={grant && (() => make.mutate(grant))}
      pending={make.isPending}
      error={make.error}
      forms={grant ? grantForms(role, grant) : {}}
    >
      <Group grow align="flex-end">
        <NativeSelect
          label="On"
          data={KINDS.map((value) => ({ value, label: words(value) }))}
          value={on}
          onChange={(event) => {
            const kind = event.currentTarget.value as Kind;
            change({ on: kind, which: "one", privilege: PRIVILEGES[kind][0] as Privilege });
          }}
        />
        <NativeSelect
          label="Privilege"
          data={PRIVILEGES[on].map((value) => ({ value, label: value.toUpperCase() }))}
          value={given.privilege}
          onChange={(event) => change({ privilege: event.currentTarget.value as Privilege })}
        />
      </Group>
      {on !== "organization" && (
        <Group grow align="flex-end">
          <NativeSelect
            label="Which"
            data={choices(on)}
            value={which}
            onChange={(event) => change({ which: event.currentTarget.value as Which })}
          />
          {which !== "all" && (
            <TextInput
              label={`Name of the ${words(place)}`}
              placeholder={EXAMPLES[place] ?? "demo"}
              value={given.name}
              onChange={(event) => change({ name: event.currentTarget.value.trim() })}
            />
          )}
        </Group>
      )}
      {on === "store" && which === "one" && (
        <TextInput
          label="Entities"
          description="A name, or the start of names and *. Left out: all of the store."
          placeholder="orders_*"
          value={given.entities}
          onChange={(event) => change({ entities: event.currentTarget.value.trim() })}
        />
      )}
      <Checkbox
        label="The role may grant it to others"
        checked={given.option}
        onChange={(event) => change({ option: event.currentTarget.checked })}
      />
    </FormDialog>
  );
}
