"""What all nouns that have one name have in common: how an object is found, listed and deleted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from leatstream.errors import not_found
from leatstream.model.names import did_you_mean, quote
from leatstream.model.objects import Meta
from leatstream.ports import Repository, UnitOfWork
from leatstream.services.environment import Environment, Page, Precondition, Principal
from leatstream.services.environment.authorization import READ, WRITE, authorize
from leatstream.services.environment.desk import require_ownership
from leatstream.services.environment.pages import ANY, Only, repository_page
from leatstream.services.nouns.dependents import refuse_dependents


class _Named(Protocol):
    @property
    def meta(self) -> Meta: ...

    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=_Named)
_NAMES = 1_000  # that a mistyped one is compared with


@dataclass(frozen=True, slots=True)
class NounService(Generic[T]):
    """The functions that nouns share; ``put`` is each noun's own.

    Attributes:
        noun: such as ``schema registry``.
        plural: such as ``schema registries``.
        path: the noun in REST paths; page tokens are bound to it.
        repository: of the noun, in a unit of work.
        dependents: what uses an object, each as a message names it; the object cannot be deleted then.
        release: deletes what belongs to an object, together with it.
        has: an object's values for the filters of lists.
    """

    noun: str
    plural: str
    path: str
    repository: Callable[[UnitOfWork], Repository[T]]
    dependents: Callable[[UnitOfWork, T], list[str]]
    release: Callable[[UnitOfWork, T], None] = lambda unit, item: None
    has: Callable[[T], Mapping[str, Any]] = lambda item: {}

    def get(self, env: Environment, principal: Principal, name: str) -> T:
        """The object; CatalogError not-found.

        Args:
            env: the environment.
            principal: who asks.
            name: of the object.
        """
        authorize(principal, READ, self.noun, name)
        with env.open_unit(write=False) as unit:
            return self.require(unit, name)

    def require(self, unit: UnitOfWork, name: str) -> T:
        """The object inside a unit; CatalogError not-found, with the nearest name that the principal sees."""
        found = self.repository(unit).find(name)
        if found is None:
            names = [one.name for one in self.repository(unit).page(limit=_NAMES)]
            raise not_found(self.noun, quote(name), hint=did_you_mean(name, names))
        return found

    def list(
        self,
        env: Environment,
        principal: Principal,
        page_size: int = 100,
        page_token: str | None = None,
        only: Only = ANY,
    ) -> Page[T]:
        """One page of objects by name.

        Args:
            env: the environment.
            principal: who asks.
            page_size: objects per page, at least 1.
            page_token: of the page before; None = the first.
            only: what the list is narrowed to.
        """
        authorize(principal, READ, self.plural)
        with env.open_unit(write=False) as unit:
            repository = self.repository(unit)
            return repository_page(
                repository, lambda item: item.name, self.path, page_size, page_token, only=only, has=self.has
            )

    def delete(
        self,
        env: Environment,
        principal: Principal,
        name: str,
        pre: Precondition = Precondition(),  # noqa: B008 - immutable
    ) -> None:
        """Delete an object that nothing uses, with what belongs to it.

        Args:
            env: the environment.
            principal: who asks.
            name: exact name.
            pre: precondition.

        Raises:
            CatalogError: ``not-found``, ``stale``, or ``has-dependents`` naming them.
        """
        authorize(principal, WRITE, self.noun, name)
        with env.open_unit() as unit:
            item = self.require(unit, name)
            pre.check(item.meta.generation, self.noun, name)
            require_ownership(self.repository(unit), item)
            refuse_dependents(f"{self.noun} {quote(name)}", self.dependents(unit, item), unit)
            self.release(unit, item)
            self.repository(unit).delete(item.meta.id)
            unit.commit()
