import { NumberInput, Text } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { api, dataOf } from "../api/client";
import { quoted } from "../api/names";
import { FormDialog } from "../parts/FormDialog";
import { rotationForms } from "./code";
import { Value } from "./NewToken";

type Props = { name: string; close: () => void; done: () => void };
const DAY = 1_440;

/** Gives a token a new value and shows it, this once. */
export default function RotateToken({ name, close, done }: Props): ReactNode {
  const [minutes, setMinutes] = useState(DAY);
  const rotate = useMutation({
    mutationFn: () =>
      dataOf(
        api.POST("/v1/tokens/{token}:rotate", {
          params: { path: { token: quoted(name) } },
          body: { grace_minutes: minutes },
        }),
      ),
    // The value is kept nowhere but on the screen.
    gcTime: 0,
    onSuccess: done,
  });
  if (rotate.data) return <Value token={rotate.data} close={close} />;
  return (
    <FormDialog
      title={`New value of token ${name}`}
      opened
      close={close}
      verb="Make the value"
      submit={() => rotate.mutate()}
      pending={rotate.isPending}
      error={rotate.error}
      forms={rotationForms(name, minutes)}
    >
      <Text size="sm">
        The token keeps its name, account, role and scope. Programs change to the new value while both are accepted.
      </Text>
      <NumberInput
        label="Minutes that the old value is still accepted"
        description="0: it is refused from now on."
        data-autofocus
        min={0}
        max={10_080}
        allowDecimal={false}
        value={minutes}
        onChange={(value) => setMinutes(Number(value) || 0)}
      />
    </FormDialog>
  );
}
