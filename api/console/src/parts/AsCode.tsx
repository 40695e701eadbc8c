import { Box, Group, SegmentedControl, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { api, dataOf } from "../api/client";
import { shell } from "../api/code";
import { Copy } from "./Copy";
import { Source } from "./Page";
import { Problem } from "./Problem";
import { Waiting } from "./Rows";

/** One thing in the languages that can say it. */
export type Forms = { sql?: string; terraform?: string; cdktf?: string; curl?: string; leat?: string };
const NAMES = { sql: "SQL", terraform: "Terraform", cdktf: "CDKTF", curl: "curl", leat: "leat" } as const;
type Language = keyof Forms;

/** What a form would do, or what is shown, as code to copy. */
export function AsCode({ forms }: { forms: Forms }): ReactNode {
  const languages = (Object.keys(NAMES) as Language[]).filter((one) => forms[one] !== undefined);
  const [wanted, choose] = useState<Language>("sql");
  const language = languages.includes(wanted) ? wanted : (languages[0] ?? "sql");
  return (
    <Shown languages={languages} language={language} choose={choose} text={forms[language] ?? ""}>
      <Source text={forms[language] ?? ""} label={`As ${NAMES[language]}`} />
    </Shown>
  );
}

type ShownProps = {
  languages: readonly Language[];
  language: Language;
  choose: (language: Language) => void;
  text: string;
  children: ReactNode;
};

function Shown({ languages, language, choose, text, children }: ShownProps): ReactNode {
  return (
    <Stack gap={6}>
      <Group justify="space-between" gap="xs">
        <SegmentedControl
          size="xs"
          aria-label="As code"
          data={languages.map((value) => ({ value, label: NAMES[value] }))}
          value={language}
          onChange={(value) => choose(value as Language)}
        />
        {text !== "" && <Copy text={text} />}
      </Group>
      <Box>{children}</Box>
    </Stack>
  );
}

/** Objects of the catalog as the server exports them; a name has its kind before it, such as `role:web`. */
export function ExportedCode({ name, curl }: { name: string | readonly string[]; curl: string }): ReactNode {
  const names = typeof name === "string" ? [name] : [...name];
  const [language, choose] = useState<Language>("sql");
  const format = language === "terraform" ? "hcl" : language === "cdktf" ? "cdktf" : "sql";
  const found = useQuery({
    queryKey: ["export", ...names, format],
    queryFn: () => dataOf(api.GET("/v1/catalog:export", { params: { query: { format, name: names } } })),
    enabled: language !== "curl" && language !== "leat",
  });
  const leat = `leat export -o copy ${names.map(shell).join(" ")}`;
  const fixed: Forms = { curl, leat };
  // The project's file of the CDK says nothing about the object.
  const files = (found.data?.files ?? []).filter(({ path }) => path !== "cdktf.json");
  const text = fixed[language] ?? files.map(({ content }) => content.trim()).join("\n\n");
  return (
    <Shown languages={["sql", "terraform", "cdktf", "curl", "leat"]} language={language} choose={choose} text={text}>
      {fixed[language] === undefined && found.error && (
        <Problem error={found.error} retry={() => void found.refetch()} />
      )}
      {fixed[language] === undefined && found.isPending && <Waiting />}
      {fixed[language] !== undefined && <Source text={text} label={`Exported as ${NAMES[language]}`} />}
      {fixed[language] === undefined &&
        files.map(({ path, content }, index) => (
          <Box key={path} mt={index > 0 ? 6 : 0}>
            {files.length > 1 && (
              <Text size="xs" c="dimmed" className="mono">
                {path}
              </Text>
            )}
            <Source text={content.trim()} label={index > 0 ? path : `Exported as ${NAMES[language]}`} />
          </Box>
        ))}
      {found.data?.notes.map((note) => (
        <Text key={note} size="xs" c="dimmed">
          {note}
        </Text>
      ))}
    </Shown>
  );
}
