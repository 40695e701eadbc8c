/** Put a text into the clipboard; says whether that worked. */
export async function copy(text: string): Promise<boolean> {
  // The clipboard's own interface exists only where the address is https or this machine.
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = document.createElement("textarea");
    field.value = text;
    // Within an open dialog: its trap of the focus would take it from elsewhere.
    (document.activeElement?.parentElement ?? document.body).append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done;
  }
}
