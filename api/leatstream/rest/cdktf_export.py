"""Exported objects as a Python program for the CDK for Terraform, with classes of ``leatstream_cdktf``."""

from __future__ import annotations

import json
import keyword
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from leatstream.rest.hcl import Address, FileContent, Heredoc, InputVariable, NameOf, uninterpolated
from leatstream.rest.terraform_export import ResourceWriter, describe_variable
from leatstream.services.export.objects import Exported
from leatstream.services.export.script import Export, ExportedFile, identifier

_PREFIX = "leatstream_"
_APP = {"language": "python", "app": "python main.py", "output": "cdktf.out"}
_STEP = "    "
_HEAD = '''"""Objects of a leatstream server, as ``leat export`` found them.

``python main.py`` synthesizes to ``cdktf.out``; ``cdktf deploy`` and ``cdktn deploy`` run it themselves.
The provider reads LEATSTREAM_URL and LEATSTREAM_TOKEN when Terraform runs.
{notes}"""

from __future__ import annotations

{imports}
# False after the first deployment, or to make the objects on another server.
IMPORT = True{helpers}


class Leatstream(tf.TerraformStack):
    """All exported objects."""

    def __init__(self, scope: Construct, id_: str) -> None:
        """Declare everything."""
        super().__init__(scope, id_)
        LeatstreamProvider(self, "leatstream")
'''
_TAIL = """

app = tf.App(outdir=os.environ.get("CDKTF_OUTDIR") or str(HERE / "cdktf.out"))
Leatstream(app, "leatstream")
app.synth()
"""
_TEXT = '''


def text(path: str) -> str:
    """A file beside this one; Terraform is to interpolate nothing in it."""
    plain = (HERE / path).read_text(encoding="utf-8")
    return plain.replace("${", "$${").replace("%{", "%%{")'''
_BINARY = '''


def binary(path: str) -> str:
    """A file beside this one, in base64."""
    return base64.b64encode((HERE / path).read_bytes()).decode()'''


def cdktf_program(objects: Sequence[Exported]) -> Export:
    """``main.py`` with a stack of all resources and their imports, and ``cdktf.json``.

    Args:
        objects: each after what it needs.
    """
    made = Export()
    writer = ResourceWriter(made, objects)
    resources = list(writer.resources(objects))
    program = _Program([address for address, _ in resources])
    body = [*program.variables(made.variables)]
    body += [line for address, attributes in resources for line in program.resource(address, attributes)]
    if resources:
        body += [f"{_STEP * 2}if IMPORT:"]
    body += [f"{_STEP * 3}{program.names[to]}.import_from({_string(id_)})" for to, id_ in writer.imports()]
    notes = "".join(f"\n{note}" for note in made.notes).replace("\\", "\\\\").replace('"""', "'''")
    read = {file.binary for file in made.files}
    helpers = (_TEXT if False in read else "") + (_BINARY if True in read else "")
    head = _HEAD.format(
        notes=notes + "\n" if notes else "",
        imports=_imports(resources, base64=True in read),
        helpers=helpers,
    )
    main = head + "\n".join(body).rstrip() + "\n" + _TAIL
    files = [ExportedFile("main.py", main), ExportedFile("cdktf.json", json.dumps(_APP, indent=2) + "\n")]
    made.files[:0] = files
    return made


def _imports(resources: Sequence[tuple[Address, Mapping[str, Any]]], *, base64: bool) -> str:
    classes = sorted({_class(address) for address, _ in resources})
    lines = [*(["import base64"] if base64 else []), "import os", "from pathlib import Path", ""]
    lines += ["from leatstream_cdktf import Construct, LeatstreamProvider, tf"]
    if classes:
        lines += ["from leatstream_cdktf.l1 import (", *(f"{_STEP}{name}," for name in classes), ")"]
    return "\n".join([*lines, "", "HERE = Path(__file__).parent"])


def _class(address: str) -> str:
    kind = address.partition(".")[0].removeprefix(_PREFIX)
    return "".join(part.capitalize() for part in kind.split("_"))


def _string(text: str) -> str:
    """A literal, in which Terraform interpolates nothing."""
    plain = uninterpolated(text)
    if '"' in plain and "'" not in plain and "\\" not in plain and plain.isprintable():
        return f"'{plain}'"
    return json.dumps(plain, ensure_ascii=False)


class _Program:
    """Statements of the stack.

    Attributes:
        names: of the variable that holds each resource.
    """

    def __init__(self, addresses: Sequence[str]) -> None:
        self.names: dict[str, str] = {}
        taken: set[str] = {"self", "scope", "id_"}
        for address in addresses:
            wanted = identifier(address.removeprefix(_PREFIX).replace(".", "_"))
            choices = (wanted, *(f"{wanted}_{number}" for number in range(2, len(addresses) + 4)))
            self.names[address] = next(name for name in choices if name not in taken)
            taken.add(self.names[address])

    def variables(self, found: Mapping[str, str]) -> Iterator[str]:
        """Input variables for secret values; they are ephemeral, so that no file or state holds one."""
        for name, what in found.items():
            yield f"{_STEP * 2}{_input(name)} = tf.TerraformVariable("
            yield f"{_STEP * 3}self,"
            yield f"{_STEP * 3}{_string(name)},"
            yield f'{_STEP * 3}type="string",'
            yield f"{_STEP * 3}description={_string(describe_variable(what))},"
            yield f"{_STEP * 3}default=tf.Token.null_value(),"
            yield f"{_STEP * 2})"
            yield f'{_STEP * 2}{_input(name)}.add_override("ephemeral", True)'

    def resource(self, address: Address, attributes: Mapping[str, Any]) -> Iterator[str]:
        """The statement that declares a resource."""
        name = self.names[address]
        yield f"{_STEP * 2}{name} = {_class(address)}("
        yield f"{_STEP * 3}self,"
        yield f"{_STEP * 3}{_string(name)},"
        for key, value in attributes.items():
            if value is not None:
                argument = f"{key}_" if keyword.iskeyword(key) else key
                yield f"{_STEP * 3}{argument}={self._value(value, 3)},"
        yield f"{_STEP * 2})"

    def _value(self, value: Any, depth: int) -> str:
        match value:
            case NameOf():
                return f"{self.names[value.address]}.name"
            case Address():
                return self.names[value]
            case InputVariable():
                return f"{_input(value.name)}.string_value"
            case FileContent():
                return f"{'binary' if value.binary else 'text'}({json.dumps(value.path)})"
            case Heredoc():
                return _long(value.text)
            case str():
                return _string(value)
            case Mapping():
                items = [
                    f"{_string(k)}: {self._value(v, depth + 1)}" for k, v in value.items() if v is not None
                ]
                return _listed("{", items, "}", depth)
            case list() | tuple():
                return _listed("[", [self._value(item, depth + 1) for item in value], "]", depth)
            case _:
                return repr(value)


def _input(name: str) -> str:
    return f"var_{name}"


def _long(text: str) -> str:
    plain = uninterpolated(text)
    # Lines as they are, where nothing in them would have to be escaped.
    odd = "\\" in plain or '"""' in plain or plain.endswith('"')
    whole = all(character == "\n" or character.isprintable() for character in plain)
    return f'"""{plain}"""' if whole and not odd else _string(text)


def _listed(begin: str, items: Sequence[str], end: str, depth: int) -> str:
    short = f"{begin}{', '.join(items)}{end}"
    # Room for the name before it, so that a formatter leaves it as it is.
    if "\n" not in short and len(short) < 60 - len(_STEP) * (depth - 3):
        return short
    lines = "".join(f"{_STEP * (depth + 1)}{item},\n" for item in items)
    return f"{begin}\n{lines}{_STEP * depth}{end}"
