import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useMutation } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { AsCode, type Forms } from "./AsCode";
import { Problem } from "./Problem";

type Props = {
  /** On the button, and on the one that confirms. */
  verb: string;
  /** What it is done to, for those who hear the button only. */
  of: string;
  title: string;
  consequence: ReactNode;
  forms: Forms;
  call: () => Promise<unknown>;
  done: () => void;
};

/** A button for what cannot be taken back: it says what follows, and asks. */
export function Confirm({ verb, of, title, consequence, forms, call, done }: Props): ReactNode {
  const [opened, { open, close }] = useDisclosure(false);
  const change = useMutation({
    mutationFn: call,
    onSuccess: () => {
      close();
      done();
    },
  });
  const ask = (): void => {
    change.reset();
    open();
  };
  return (
    <>
      <Button size="compact-sm" variant="default" onClick={ask} aria-label={`${verb} ${of}`}>
        {verb}
      </Button>
      <Modal opened={opened} onClose={close} title={title}>
        <Stack>
          <Text size="sm" component="div">
            {consequence}
          </Text>
          {change.error && <Problem error={change.error} />}
          <AsCode forms={forms} />
          <Group justify="flex-end">
            <Button variant="default" onClick={close} data-autofocus>
              Cancel
            </Button>
            <Button color="red" loading={change.isPending} onClick={() => change.mutate()}>
              {verb}
            </Button>
          </Group>
        </Stack>
      </Modal>
    </>
  );
}
