"""``/v1/sql/vocabulary``"""

from __future__ import annotations

from functools import cache

from leatstream.rest.answers import problems
from leatstream.rest.deps import Caller
from leatstream.rest.routers import api_router
from leatstream.rest.schemas.vocabulary import VocabularyView
from leatstream.services.statements.vocabulary import read_vocabulary

router = api_router(prefix="/v1", tags=["statements"])


@router.get("/sql/vocabulary", responses=problems())
def get_vocabulary(caller: Caller) -> VocabularyView:
    """Show the words of SQL for editors that complete: keywords, functions, types and properties."""
    return _words()


@cache
def _words() -> VocabularyView:
    return VocabularyView.from_domain(read_vocabulary())
