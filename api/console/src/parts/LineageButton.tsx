import { Button } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

/** The way to what records pass through before and after an object; `root` is the id of its node. */
export function LineageButton({ root }: { root: string }): ReactNode {
  return (
    <Button component={Link} to="/lineage" search={{ root } as never} size="xs" variant="default">
      Lineage
    </Button>
  );
}
