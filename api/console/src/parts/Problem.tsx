import { Alert, Button, Group, List, Stack, Text } from "@mantine/core";
import { IconAlertTriangle } from "@tabler/icons-react";
import type { ReactNode } from "react";
import { asApiError } from "../api/problem";

type Props = { error: unknown; title?: string; retry?: () => void };

/** An error as the server words it: what happened, each fault, what to do, and the request's id. */
export function Problem({ error, title, retry }: Props): ReactNode {
  const found = asApiError(error);
  const more = found.faults.filter((fault) => fault.detail !== found.message);
  return (
    <Alert
      className="problem"
      role="alert"
      variant="default"
      icon={<IconAlertTriangle aria-hidden />}
      title={title ?? found.message}
    >
      <Stack gap={6}>
        {title && <Text size="sm">{found.message}</Text>}
        {more.length > 0 && (
          <List size="sm">
            {more.map((fault) => (
              <List.Item key={`${fault.detail}${fault.pointer ?? ""}`}>{fault.detail}</List.Item>
            ))}
          </List>
        )}
        {found.hint && (
          <Text size="sm" fw={600}>
            {found.hint}
          </Text>
        )}
        <Group gap="md">
          <Text size="xs" c="dimmed">
            {found.code}
            {found.requestId ? ` · request ${found.requestId}` : ""}
          </Text>
          {retry && (
            <Button size="compact-xs" variant="default" onClick={retry}>
              Try again
            </Button>
          )}
        </Group>
      </Stack>
    </Alert>
  );
}
