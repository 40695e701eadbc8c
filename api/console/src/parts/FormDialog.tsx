import { Button, Group, Modal, Stack } from "@mantine/core";
import { type FormEvent, type ReactNode, useId } from "react";
import { AsCode, type Forms } from "./AsCode";
import { Problem } from "./Problem";

type Props = {
  title: string;
  opened: boolean;
  close: () => void;
  verb: string;
  /** Undefined while something that is needed is missing. */
  submit?: () => void;
  pending: boolean;
  error: unknown;
  forms: Forms;
  children: ReactNode;
};

/** A form in a dialog: its fields, the same as code, and what the server says against it. */
export function FormDialog(props: Props): ReactNode {
  const { title, opened, close, verb, submit, pending, error, forms, children } = props;
  const id = useId();
  const send = (event: FormEvent): void => {
    event.preventDefault();
    submit?.();
  };
  return (
    <Modal opened={opened} onClose={close} title={title}>
      <Stack>
        <form id={id} onSubmit={send}>
          <Stack gap="sm">{children}</Stack>
        </form>
        {error ? <Problem error={error} /> : null}
        {submit && <AsCode forms={forms} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={close}>
            Cancel
          </Button>
          <Button type="submit" form={id} loading={pending} disabled={submit === undefined}>
            {verb}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
