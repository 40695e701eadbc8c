import { asText } from "../api/exact";
import type { Schemas } from "../api/problem";
import type { Resumed } from "../api/stream";

type RecordView = Schemas["RecordView"];

/**
 * Lets a stream of records go on behind the last one of each partition.
 *
 * `asked` is what the stream was opened with; `can` whether the store has such places.
 */
export function resumedRecords(path: string, asked: string, can: () => boolean): Resumed<RecordView> {
  const last = new Map<string, bigint>();
  return {
    can,
    isNew: ({ partition, offset }) => {
      if (!/^\d+$/.test(asText(offset))) return true;
      const [place, at] = [asText(partition), BigInt(asText(offset))];
      if (can() && at <= (last.get(place) ?? -1n)) return false;
      last.set(place, at);
      return true;
    },
    path: (opened) => {
      const wanted = new URLSearchParams(asked);
      // A partition without a record so far begins where the stream began.
      if (wanted.get("from") === "latest") wanted.set("since", opened);
      if (last.size > 0) {
        wanted.delete("offset");
        wanted.set("after", [...last].map(([place, at]) => `${place}:${at}`).join(","));
      }
      return `${path}?${wanted}`;
    },
  };
}
