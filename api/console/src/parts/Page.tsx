import { Anchor, Breadcrumbs, Group, Paper, Stack, Text, Title } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useEffect } from "react";

type Crumb = { label: string; to: string; search?: Record<string, string> };
type Props = {
  title: string;
  crumbs?: readonly Crumb[];
  beside?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
};

/** A page: its way, its title (the document's too), its actions, its contents. */
export function Page({ title, crumbs = [], beside, actions, children }: Props): ReactNode {
  useEffect(() => {
    document.title = `${title} · leatstream`;
  }, [title]);
  return (
    <Stack gap="md" className="page">
      <div>
        {crumbs.length > 0 && (
          <Breadcrumbs aria-label="Breadcrumbs" mb={4}>
            {crumbs.map((crumb) => (
              <Anchor key={crumb.to} component={Link} to={crumb.to} search={crumb.search as never} size="sm">
                {crumb.label}
              </Anchor>
            ))}
          </Breadcrumbs>
        )}
        <Group justify="space-between" align="center" gap="sm">
          <Group gap="sm" className="heading">
            <Title order={1} className="break">
              {title}
            </Title>
            {beside}
          </Group>
          {actions && <Group gap="xs">{actions}</Group>}
        </Group>
      </div>
      {children}
    </Stack>
  );
}

/** A titled part of a page. */
export function Section({ title, children }: { title: string; children: ReactNode }): ReactNode {
  return (
    <section>
      <Title order={2} mb={6}>
        {title}
      </Title>
      {children}
    </section>
  );
}

/** What a list shows when it has nothing, with what to do next. */
export function Empty({ title, children }: { title: string; children?: ReactNode }): ReactNode {
  return (
    <Paper withBorder p="lg" className="empty">
      <Text fw={600} mb={4}>
        {title}
      </Text>
      {children}
    </Paper>
  );
}

/** Names and values, one under the other. */
export function Facts({ facts }: { facts: readonly (readonly [string, ReactNode])[] }): ReactNode {
  return (
    <dl className="facts">
      {facts
        .filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== false)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd className="break">{value}</dd>
          </div>
        ))}
    </dl>
  );
}

/** Text that keeps its lines, such as SQL. */
export function Source({ text, label }: { text: string; label: string }): ReactNode {
  return (
    <section className="source" aria-label={label} tabIndex={0}>
      <pre>{text}</pre>
    </section>
  );
}
