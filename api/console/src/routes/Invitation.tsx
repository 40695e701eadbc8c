import { Alert, Button, Card, Center, Divider, Group, Stack, Text, Title } from "@mantine/core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type ReactNode, useEffect, useState } from "react";
import { Value } from "../access/NewToken";
import { asApiError, errorOf, type Schemas } from "../api/problem";
import { findSession } from "../api/session";
import { keepToken } from "../api/token";

/** Takes the invitation of a link: nothing happens before the person agrees, as programs visit links too. */
export function Invitation(): ReactNode {
  const navigate = useNavigate();
  const [value] = useState(() => window.location.hash.slice(1));
  useEffect(() => {
    document.title = "Invitation · leatstream";
    // The value stays out of the browser's history.
    window.history.replaceState(window.history.state, "", window.location.pathname);
  }, []);
  const { data: session } = useQuery({ queryKey: ["session"], queryFn: findSession });
  // The token is kept nowhere but on the screen, and in this tab.
  const accept = useMutation({ mutationFn: () => take(value), gcTime: 0 });
  const token = accept.data;
  const enter = (): void => {
    if (token !== undefined) keepToken(token.value);
    void navigate({ href: "/", replace: true });
  };
  if (token !== undefined) return <Value token={token} close={enter} />;
  return (
    <Center component="main" mih="100vh" p="md">
      <Card withBorder padding="xl" w={420}>
        <Stack>
          <Group gap="sm">
            <img src="/ui/icon.svg" width={32} height={32} alt="" />
            <Title order={1}>Invitation</Title>
          </Group>
          {accept.error && (
            <Alert variant="default" className="problem" role="alert" title="The invitation was not taken">
              {[asApiError(accept.error).message, asApiError(accept.error).hint].filter(Boolean).join(" ")}
            </Alert>
          )}
          <Text size="sm">
            You are invited to this server of leatstream. Accept to become a user and to get a token. The link counts
            once.
          </Text>
          <Button onClick={() => accept.mutate()} loading={accept.isPending} disabled={value === ""}>
            Accept
          </Button>
          {session?.issuer && (
            <>
              <Divider label="or without a token" />
              <Button component="a" variant="default" href="/v1/sign-in/start?next=%2F">
                Sign in with {new URL(session.issuer).host}
              </Button>
              <Text size="sm" c="dimmed">
                This takes the invitation too, if the provider has verified the address that was invited.
              </Text>
            </>
          )}
        </Stack>
      </Card>
    </Center>
  );
}

async function take(value: string): Promise<Schemas["NewTokenView"]> {
  // Not by the typed client: a link that is refused does not end the sign-in of this browser.
  const answer = await fetch("/v1/invitations:accept", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ value }),
  });
  if (!answer.ok) throw await errorOf(answer);
  return (await answer.json()) as Schemas["NewTokenView"];
}
