"""How Terraform's names become Python's."""

from __future__ import annotations

import keyword

#: Names of the CDK library's own: arguments of elements, and members that a getter must not hide.
RESERVED = {
    "arguments": frozenset(
        {
            "alias",
            "connection",
            "count",
            "depends_on",
            "for_each",
            "id_",
            "lifecycle",
            "provider",
            "provisioners",
            "scope",
        }
    ),
    "members": frozenset(
        {
            "add_move_target",
            "add_override",
            "alias",
            "cdktf_stack",
            "connection",
            "count",
            "depends_on",
            "for_each",
            "fqn",
            "friendly_unique_id",
            "has_resource_move",
            "import_from",
            "interpolation_for_attribute",
            "lifecycle",
            "meta_attributes",
            "move_from_id",
            "move_to",
            "move_to_id",
            "node",
            "override_logical_id",
            "provider",
            "provisioners",
            "reset_override_logical_id",
            "terraform_generator_metadata",
            "terraform_meta_arguments",
            "terraform_provider_source",
            "terraform_resource_type",
            "to_hcl_terraform",
            "to_metadata",
            "to_string",
            "to_terraform",
            "with_",
        }
    ),
}


def class_name(name: str) -> str:
    """``schema_registry`` gives SchemaRegistry."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def element_name(name: str, nesting: str) -> str:
    """The class name of a nested object; of one element where it repeats: ``columns`` gives Column."""
    if nesting != "single":
        if name.endswith("ies"):
            name = name[:-3] + "y"
        elif name.endswith("s") and not name.endswith("ss"):
            name = name[:-1]
    return class_name(name)


def getter_name(name: str, reserved: frozenset[str]) -> str:
    """The property that reads an attribute; names that are taken get a suffix: ``fqn_attribute``."""
    if name in reserved:
        return f"{name}_attribute"
    return name + "_" if keyword.iskeyword(name) else name
