#!/bin/sh
# Terraform starts this file as the leatstream provider. It is the same on every machine, so that the hash in
# .terraform.lock.hcl never changes with the place of the Python environment; that place is looked up here.
here=$(cd -P "$(dirname "$0")" && pwd)
for note in "$here/../interpreter" "${XDG_CONFIG_HOME:-$HOME/.config}/leatstream/interpreter"; do
  if [ -z "$LEATSTREAM_PYTHON" ] && [ -r "$note" ]; then
    read -r LEATSTREAM_PYTHON <"$note"
  fi
done
if [ -z "$LEATSTREAM_PYTHON" ] || ! [ -x "$LEATSTREAM_PYTHON" ]; then
  echo "The Python environment of the leatstream provider is gone (${LEATSTREAM_PYTHON:-none noted})." >&2
  echo "Run \`leat terraform install\` again, or set LEATSTREAM_PYTHON to a Python that has leatstream[terraform]." >&2
  exit 1
fi
# -P: a module of the user's working directory must not stand in for one of ours.
exec "$LEATSTREAM_PYTHON" -P -m leatstream_terraform
