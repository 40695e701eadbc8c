import { Alert, Button, Card, Center, Code, Divider, Group, PasswordInput, Stack, Text, Title } from "@mantine/core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type FormEvent, type ReactNode, useEffect, useState } from "react";
import { api, dataOf } from "../api/client";
import { ApiError, asApiError } from "../api/problem";
import { findSession } from "../api/session";
import { keepToken, tokenWasRefused } from "../api/token";

const LONG_NAMES = { whiteSpace: "normal", overflowWrap: "anywhere", textAlign: "center" } as const;
// What the server says in the address after a sign-in that failed.
const FAILURES: Record<string, string> = {
  stale: "The sign-in took too long, or was started in another browser. Try again.",
  refused: "The identity provider or this server refused the sign-in. The server's log says why.",
  "no-role": "You are known, but no rule of this server gives you a role. Ask its administrator.",
  "no-provider": "This server has no identity provider for people.",
  unreachable: "The identity provider does not answer. Try again.",
  insecure: "Sign-in by an identity provider needs https. Open this page by its https address.",
};

/** Leads to the identity provider, or asks for a token and tries it before it is kept. */
export function SignIn(): ReactNode {
  const { next, failed } = useSearch({ from: "/sign-in" });
  const navigate = useNavigate();
  const [token, setToken] = useState("");
  useEffect(() => {
    document.title = "Sign in · leatstream";
  }, []);
  const { data: session } = useQuery({ queryKey: ["session"], queryFn: findSession });
  const attempt = useMutation({
    mutationFn: (given: string) => tryToken(given),
    onSuccess: (given) => {
      keepToken(given);
      void navigate({ href: next ?? "/", replace: true });
    },
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const given = token.trim();
    if (given !== "") attempt.mutate(given);
  };
  return (
    <Center component="main" mih="100vh" p="md">
      <Card withBorder padding="xl" w={420}>
        <form onSubmit={submit}>
          <Stack>
            <Group gap="sm">
              <img src="/ui/icon.svg" width={32} height={32} alt="" />
              <Title order={1}>leatstream</Title>
            </Group>
            {tokenWasRefused() && attempt.isIdle && (
              <Alert variant="default" className="problem" role="alert" title="You have been signed out">
                The server no longer accepts your sign-in. Sign in again.
              </Alert>
            )}
            {failed !== undefined && attempt.isIdle && (
              <Alert variant="default" className="problem" role="alert" title="You are not signed in">
                {FAILURES[failed] ?? "The sign-in failed. The server's log says why."}
              </Alert>
            )}
            {session?.issuer && (
              <>
                <Button
                  component="a"
                  h="auto"
                  mih={36}
                  py={6}
                  styles={{ label: LONG_NAMES }}
                  href={`/v1/sign-in/start?next=${encodeURIComponent(next ?? "/")}`}
                >
                  Sign in with {hostOf(session.issuer)}
                </Button>
                <Divider label="or with a token" />
              </>
            )}
            <PasswordInput
              label="Token"
              placeholder="leat_…"
              autoFocus
              autoComplete="off"
              value={token}
              onChange={(event) => setToken(event.currentTarget.value)}
              error={attempt.error ? refusal(asApiError(attempt.error)) : null}
            />
            <Button
              type="submit"
              variant={session?.issuer ? "default" : "filled"}
              loading={attempt.isPending}
              disabled={token.trim() === ""}
            >
              Sign in
            </Button>
            <Text size="sm" c="dimmed">
              <Code>leat dev</Code> prints which file holds your token; of a server, ask who runs it. The token stays
              in this tab and is forgotten when you close it.
            </Text>
          </Stack>
        </form>
      </Card>
    </Center>
  );
}

function hostOf(issuer: string): string {
  return new URL(issuer).host;
}

async function tryToken(token: string): Promise<string> {
  // A header holds no other characters; the browser's own words for that help nobody.
  if (!/^[\x21-\x7e]+$/.test(token)) {
    throw new ApiError("unauthenticated", 401, "A token has letters, digits and _ only.");
  }
  await dataOf(api.GET("/v1/server", { headers: { Authorization: `Bearer ${token}` } }));
  return token;
}

function refusal(error: ApiError): string {
  if (error.status === 401) return `The server does not know this token. ${error.message}`;
  return [error.message, error.hint].filter(Boolean).join(" ");
}
