import { FileInput, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { api, dataOf } from "../api/client";
import { quoted } from "../api/names";
import { FormDialog } from "../parts/FormDialog";
import { isJar, nameOf, newSourceForms } from "./code";

type Props = { close: () => void; done: (name: string) => void };
// The server's own bound, of the text that is sent: of a jar its base64.
const LONGEST = 512 * 1024;

/** Sends a file as a function source: Python's text, or a Java jar. */
export default function NewSource({ close, done }: Props): ReactNode {
  const [file, choose] = useState<File | null>(null);
  const [name, setName] = useState("");
  const [comment, setComment] = useState("");
  const make = useMutation({
    mutationFn: async (chosen: File) =>
      dataOf(
        api.PUT("/v1/function-sources/{function_source}", {
          // A source of this name stays as it is: new code is given on its function's page.
          params: { path: { function_source: quoted(name) }, header: { "If-None-Match": "*" } },
          body: {
            file: chosen.name,
            content: await contentOf(chosen),
            comment: comment || null,
            restart_queries: true,
          },
        }),
      ),
    onSuccess: () => {
      close();
      done(name);
    },
  });
  const fault = file === null ? undefined : faultOf(file);
  return (
    <FormDialog
      title="New function source"
      opened
      close={close}
      verb="Create"
      submit={file === null || fault !== undefined || name === "" ? undefined : () => make.mutate(file)}
      pending={make.isPending}
      error={make.error}
      forms={newSourceForms(name, file?.name ?? "", comment)}
    >
      <FileInput
        label="File"
        description="A Python file, or a Java jar with all that it needs besides Java and Spark."
        placeholder="Choose a .py or .jar file"
        accept=".py,.jar"
        clearable
        clearButtonProps={{ "aria-label": "Choose no file" }}
        value={file}
        error={fault}
        onChange={(chosen) => {
          choose(chosen);
          if (chosen !== null && name === "") setName(nameOf(chosen.name));
        }}
      />
      <TextInput
        label="Name"
        description="Taken as it is written, upper case too."
        value={name}
        onChange={(event) => setName(event.currentTarget.value.trim())}
      />
      <TextInput label="Comment" value={comment} onChange={(event) => setComment(event.currentTarget.value)} />
    </FormDialog>
  );
}

function faultOf({ name, size }: File): string | undefined {
  if (!/\.(py|jar)$/.test(name)) return "Its name must end in .py or in .jar.";
  const sent = isJar(name) ? Math.ceil(size / 3) * 4 : size;
  return sent > LONGEST ? `It is too large: at most ${isJar(name) ? 384 : 512} KiB.` : undefined;
}

/** The text of a file; of a jar its base64. */
async function contentOf(file: File): Promise<string> {
  if (!isJar(file.name)) return file.text();
  const bytes = new Uint8Array(await file.arrayBuffer());
  let binary = "";
  // One call with all bytes would be too many arguments.
  for (let at = 0; at < bytes.length; at += 8_192) binary += String.fromCharCode(...bytes.subarray(at, at + 8_192));
  return btoa(binary);
}
