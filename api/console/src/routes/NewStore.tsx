import { Button, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, useParams, useSearch } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { api, dataOf } from "../api/client";
import { Page } from "../parts/Page";
import { Problem } from "../parts/Problem";
import { Waiting } from "../parts/Rows";
import { useStoreForm } from "../stores/api";
import { Kinds } from "../stores/Kinds";
import { StoreForm } from "../stores/StoreForm";

/** Creates a store: first its kind, then its settings. */
export function NewStore(): ReactNode {
  const { kind: wanted } = useSearch({ from: "/inside/new-store" });
  const form = useStoreForm();
  const kind = form.data?.kinds.find(({ name }) => name === wanted);
  return (
    <Page
      title={kind ? `New ${kind.name} store` : "New store"}
      crumbs={[{ label: "Stores", to: "/stores" }]}
      actions={
        kind && (
          <Button component={Link} to="/new-store" size="xs" variant="default">
            Another kind
          </Button>
        )
      }
    >
      {form.error && <Problem error={form.error} retry={() => void form.refetch()} />}
      {form.isPending && <Waiting />}
      {form.data && !kind && (
        <>
          <Text size="sm">
            {wanted ? `There is no kind ${wanted}. ` : ""}A store is a system of yours that holds records. Choose its
            kind.
          </Text>
          <Kinds kinds={form.data.kinds} />
        </>
      )}
      {form.data && kind && (
        <>
          <Text size="sm">{kind.help}</Text>
          <StoreForm key={kind.name} form={form.data} kind={kind} />
        </>
      )}
    </Page>
  );
}

/** Changes the settings of a store; what is secret stays unless it is given again. */
export function ChangeStore(): ReactNode {
  const { store: name } = useParams({ from: "/inside/stores/$store/change" });
  const form = useStoreForm();
  const path = { params: { path: { store: name } } };
  const store = useQuery({
    queryKey: ["store", name],
    queryFn: () => dataOf(api.GET("/v1/stores/{store}", path)),
    refetchOnMount: "always",
  });
  const kind = form.data?.kinds.find((one) => one.name === store.data?.kind);
  const error = form.error ?? store.error;
  return (
    <Page
      title={`Change ${store.data?.name ?? name}`}
      crumbs={[
        { label: "Stores", to: "/stores" },
        { label: store.data?.name ?? name, to: `/stores/${encodeURIComponent(name)}` },
      ]}
    >
      {error && <Problem error={error} retry={() => void Promise.all([form.refetch(), store.refetch()])} />}
      {!error && !(kind && store.isFetchedAfterMount) && <Waiting />}
      {/* The form begins with what is stored now, and not with what another page has read. */}
      {form.data && store.data && kind && store.isFetchedAfterMount && (
        <>
          <Text size="sm">{kind.help} A secret whose field is empty stays as it is stored.</Text>
          <StoreForm form={form.data} kind={kind} store={store.data} />
        </>
      )}
    </Page>
  );
}
