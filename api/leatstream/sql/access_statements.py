"""Statements about access: roles, grants, users, service accounts, tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from sqlglot.tokenizer_core import Token, TokenType

from leatstream.model.access import KINDS, NAME_PARTS, plural
from leatstream.sql import statements as s
from leatstream.sql.noun_statements import MAILED, NounStatements, named

ACCOUNTS = ("user", "service_account")
_RELATIONS = ("stream", "changelog", "table", "materialized_view")
_PLURALS = {plural(kind): kind for kind in KINDS}


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessTarget:
    """ORGANIZATION | noun name [ENTITIES 'pattern'] | ALL nouns [IN DATABASE d | IN SCHEMA s]

    Attributes:
        noun: kind of the object.
        name: of the object; None: all of the kind.
        within: what they are all in.
        of: kind of ``within``.
    """

    noun: str
    name: s.Name | None = None
    within: s.Name | None = None
    of: Literal["database", "schema"] | None = None
    entities: s.Value | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateRole(s.Statement):
    """CREATE ROLE [IF NOT EXISTS] name [COMMENT 'text']"""

    name: s.Name
    comment: str | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateAccount(s.Statement):
    """CREATE USER|SERVICE_ACCOUNT [IF NOT EXISTS] name [COMMENT 'text'] [WITH (…)]"""

    noun: Literal["user", "service_account"]
    name: s.Name
    properties: s.Properties
    comment: str | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateToken(s.Statement):
    """CREATE API_TOKEN name [COMMENT 'text'] [WITH (…)]"""

    name: s.Name
    properties: s.Properties
    comment: str | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class InviteUser(s.Statement):
    """INVITE USER 'mail' [COMMENT 'text'] WITH (…)"""

    name: s.Name
    properties: s.Properties
    comment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantPrivileges(s.Statement):
    """GRANT privilege, … ON target TO ROLE name [WITH GRANT OPTION], and REVOKE … FROM ROLE name"""

    privileges: tuple[str, ...]
    target: AccessTarget
    role: s.Name
    grant_option: bool = False
    revoke: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantRole(s.Statement):
    """GRANT ROLE name TO ROLE|USER|SERVICE_ACCOUNT name, and REVOKE ROLE … FROM …"""

    role: s.Name
    noun: Literal["role", "user", "service_account"]
    name: s.Name
    revoke: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CanI(s.Statement):
    """CAN I privilege ON target"""

    privilege: str
    target: AccessTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class ListGrants(s.Statement):
    """LIST|SHOW GRANTS TO ROLE name | ON target"""

    role: s.Name | None = None
    target: AccessTarget | None = None


class AccessStatements(NounStatements):
    """Reads them."""

    def _create_access(self, first: Token, noun: str, optional: bool) -> s.Statement:
        """CREATE ROLE, USER, SERVICE_ACCOUNT or API_TOKEN, after the noun."""
        name, comment = self._account(noun), self._comment()
        how: dict[str, Any] = {"name": name, "comment": comment, "if_not_exists": optional}
        if noun == "role":
            return CreateRole(**self._base(first), **how)
        how["properties"] = self._with()
        if noun == "api_token":
            return CreateToken(**self._base(first), **how)
        return CreateAccount(**self._base(first), noun=noun, **how)  # type: ignore[arg-type]

    def _comment(self) -> str | None:
        """COMMENT 'text', if it is there."""
        raise NotImplementedError

    def _grant_statement(self, first: Token) -> s.Statement:
        self._advance()
        revoke = first.text.lower() == "revoke"
        if revoke and self.take("invitation"):
            name = self._account("invitation")
            return s.Drop(**self._base(first), noun="invitation", name=name)
        to = "from" if revoke else "to"
        if self.take("role"):
            role = self._one("a role's name")
            self.expect(to)
            noun = self._noun(("role", *ACCOUNTS), named(("role", *ACCOUNTS)))
            name = self._account(noun)
            return GrantRole(**self._base(first), role=role, noun=noun, name=name, revoke=revoke)  # type: ignore[arg-type]
        privileges = tuple(self.many(self._privilege))
        self.expect("on")
        target = self._target()
        self.expect(to, "role")
        role = self._one("a role's name")
        option = not revoke and self.take("with")
        if option:
            self.expect("grant", "option")
        return GrantPrivileges(
            **self._base(first),
            privileges=privileges,
            target=target,
            role=role,
            grant_option=bool(option),
            revoke=revoke,
        )

    def _invite_statement(self, first: Token) -> s.Statement:
        self._advance()
        self.expect("user")
        name, comment = self._account("user"), self._comment()
        return InviteUser(**self._base(first), name=name, comment=comment, properties=self._with())

    def _can_statement(self, first: Token) -> s.Statement:
        self._advance()
        self.expect("i")
        privilege = self._privilege()
        self.expect("on")
        return CanI(**self._base(first), privilege=privilege, target=self._target())

    def _grants_list(self, first: Token) -> s.Statement:
        """LIST GRANTS, after the noun."""
        if self.take("on"):
            return ListGrants(**self._base(first), target=self._target())
        if not (self.take("to") or self.take("for")):
            self.unexpected("TO ROLE, or ON and an object")
        self.expect("role")
        return ListGrants(**self._base(first), role=self._one("a role's name"))

    def _account(self, noun: str) -> s.Name:
        """A name; that of a user, which often is an e-mail address, also as a text."""
        first = self._curr
        if noun in MAILED and first.token_type == TokenType.STRING:
            value = self._quoted("a name")
            return s.Name((str(value.value),), self.place(first))
        return self._one(f"a {noun}'s name")

    def _privilege(self) -> str:
        token = self._curr
        words = [token.text.lower()]
        if token.token_type not in (TokenType.VAR, TokenType.SELECT, TokenType.INSERT, TokenType.ALL):
            self.unexpected("a privilege, such as SELECT or USAGE")
        self._advance()
        return words[0]

    def _target(self) -> AccessTarget:
        if self.take("organization"):
            return AccessTarget(noun="organization")
        if self.take("all"):
            return self._all()
        noun = self._noun((*KINDS, *_RELATIONS), named(("organization", *KINDS)))
        kind = "relation" if noun in _RELATIONS else noun
        name = self._upto(NAME_PARTS[kind])
        pattern = None
        if kind == "store" and self.take("entities"):
            pattern = self._quoted("a name of entities, such as 'orders_*'")
        return AccessTarget(noun=kind, name=name, entities=pattern)

    def _all(self) -> AccessTarget:
        plurals = tuple(_PLURALS)
        noun = _PLURALS[self._noun(plurals, named(plurals))]
        if NAME_PARTS[noun] == 1 or not self.take("in"):
            return AccessTarget(noun=noun)
        if self.take("database"):
            return AccessTarget(noun=noun, within=self._one("a database's name"), of="database")
        self.expect("schema")
        return AccessTarget(noun=noun, within=self._upto(2), of="schema")
