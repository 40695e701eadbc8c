import { useInfiniteQuery } from "@tanstack/react-query";
import { type ApiError, asApiError } from "./problem";

export const PAGE_SIZE = 50;
type Page<T> = { items: T[]; next_page_token?: string | null };
export type Pages<T> = {
  items: T[];
  hasMore: boolean;
  loadMore: () => void;
  isLoadingMore: boolean;
  isPending: boolean;
  error: ApiError | null;
  reload: () => void;
};

/**
 * A list of the API, page by page as it is asked for.
 *
 * With `poll` (milliseconds) the loaded pages are read again while the page is visible, the more of them the rarer.
 */
export function usePages<T>(
  key: readonly unknown[],
  load: (token: string | undefined) => Promise<Page<T>>,
  poll?: number,
): Pages<T> {
  const found = useInfiniteQuery({
    queryKey: ["pages", ...key],
    queryFn: ({ pageParam }) => load(pageParam),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next_page_token ?? undefined,
    refetchInterval: (query) =>
      poll === undefined ? false : poll * Math.max(1, query.state.data?.pages.length ?? 1),
  });
  return {
    items: found.data?.pages.flatMap((page) => page.items) ?? [],
    hasMore: found.hasNextPage,
    loadMore: () => void found.fetchNextPage(),
    isLoadingMore: found.isFetchingNextPage,
    isPending: found.isPending,
    error: found.error && asApiError(found.error),
    reload: () => void found.refetch(),
  };
}
