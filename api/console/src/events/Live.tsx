import { Text } from "@mantine/core";
import type { ReactNode } from "react";
import { useFeedState } from "./feed";

/** Says when changes do not arrive: what a page shows may be some seconds old then. */
export function Live(): ReactNode {
  const lost = useFeedState() === "lost";
  return (
    <span role="status" className="live">
      {lost && (
        <Text
          size="sm"
          component="span"
          className="state"
          data-tone="wait"
          title="The server sends no changes now. Pages are read again every few seconds instead."
        >
          <span className="dot" aria-hidden="true" />
          Not live
        </Text>
      )}
    </span>
  );
}
