import { Button, Center, Group, Loader, Table, Text } from "@mantine/core";
import type { ReactNode } from "react";
import type { Pages } from "../api/pages";
import { Problem } from "./Problem";

export type Column<T> = {
  head: string;
  cell: (item: T) => ReactNode;
  width?: number | string;
  /** The least width of a column that takes what is left. */
  least?: number;
};
type RowsProps<T> = { label: string; columns: readonly Column<T>[]; items: readonly T[]; keyOf: (item: T) => string };

/** A table that scrolls by keyboard too. */
export function Rows<T>({ label, columns, items, keyOf }: RowsProps<T>): ReactNode {
  return (
    <section className="scroll" aria-label={label} tabIndex={0}>
      <Table highlightOnHover stickyHeader>
        <Table.Thead>
          <Table.Tr>
            {columns.map((column) => (
              <Table.Th key={column.head} w={column.width} miw={column.width ?? column.least ?? 150}>
                {column.head}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {items.map((item) => (
            <Table.Tr key={keyOf(item)}>
              {columns.map((column) => (
                <Table.Td key={column.head}>{column.cell(item)}</Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </section>
  );
}

type ListProps<T> = Omit<RowsProps<T>, "items"> & { pages: Pages<T>; empty: ReactNode; shows?: (item: T) => boolean };

/** A list of the API: its loaded rows, its errors, what to do when it is empty, and a button for more. */
export function PagedRows<T>({ pages, empty, shows, ...table }: ListProps<T>): ReactNode {
  if (pages.isPending) return <Waiting />;
  if (pages.error && pages.items.length === 0) return <Problem error={pages.error} retry={pages.reload} />;
  if (pages.items.length === 0) return empty;
  const items = shows ? pages.items.filter(shows) : pages.items;
  return (
    <>
      {pages.error && <Problem error={pages.error} title="These rows are old" retry={pages.reload} />}
      {items.length > 0 && <Rows {...table} items={items} />}
      <Group mt="xs" gap="md">
        <Text size="sm" c="dimmed" role="status">
          {items.length === pages.items.length
            ? `${items.length} shown${pages.hasMore ? ", there are more" : ""}`
            : `${items.length} of ${pages.items.length} loaded rows fit${pages.hasMore ? ", there are more" : ""}`}
        </Text>
        {pages.hasMore && (
          <Button size="xs" variant="default" loading={pages.isLoadingMore} onClick={pages.loadMore}>
            Load more
          </Button>
        )}
      </Group>
    </>
  );
}

/** What is shown until an answer comes. */
export function Waiting(): ReactNode {
  return (
    <Center p="xl">
      <Loader size="sm" aria-label="Loading" role="status" />
    </Center>
  );
}
