"""Which functions a statement may call, and how each is written for Spark.

An allow list: what is not here never reaches Spark, whatever Spark could do with it.
"""

from __future__ import annotations

from sqlglot import exp

from leatstream.errors import Faults
from leatstream.sql.passes.columns import suggestion
from leatstream.sql.passes.scope import Input, place

_PLAIN = """
abs acos acosh add_months array array_append array_compact array_contains array_distinct array_except
array_insert array_intersect array_join array_max array_min array_position array_prepend array_remove
array_repeat array_size array_sort array_union arrays_overlap arrays_zip ascii asin asinh atan atan2 atanh
base64 bin bit_count bit_length bround btrim cardinality cbrt ceil ceiling char char_length
character_length chr coalesce concat concat_ws contains conv convert_timezone cos cosh cot crc32 csc
current_date current_timestamp date_add date_diff date_format date_from_unix_date date_part date_sub
date_trunc dateadd datediff day dayname dayofmonth dayofweek dayofyear decode degrees e element_at elt encode
endswith equal_null exp expm1 factorial find_in_set flatten floor format_number format_string from_json
from_unixtime from_utc_timestamp get get_json_object getbit greatest hash hex hour hypot if ifnull initcap
instr isnan isnotnull isnull json_array_length json_object_keys last_day lcase least left len length
levenshtein ln localtimestamp locate log log10 log1p log2 lower lpad ltrim luhn_check make_date
make_timestamp make_timestamp_ltz make_timestamp_ntz map map_concat map_contains_key map_entries
map_from_arrays map_from_entries map_keys map_values mask md5 minute mod month monthname months_between
named_struct nanvl negative next_day now nullif nullifzero nvl nvl2 octet_length overlay parse_url pi pmod
position positive pow power quarter radians regexp_count regexp_extract_all regexp_instr regexp_like
regexp_replace regexp_substr repeat replace reverse right rint round rpad rtrim sec second sequence sha
sha1 sha2 shiftleft shiftright shiftrightunsigned shuffle sign signum sin sinh size slice sort_array soundex
space split split_part sqrt startswith str_to_map struct substr substring substring_index tan tanh
timestamp_micros timestamp_millis timestamp_seconds to_binary to_char to_date to_json to_number to_timestamp
to_timestamp_ltz to_timestamp_ntz to_unix_timestamp to_utc_timestamp translate trim trunc try_add
try_divide try_element_at try_mod try_multiply try_subtract try_to_binary try_to_number try_to_timestamp
typeof ucase unbase64 unhex unix_date unix_micros unix_millis unix_seconds unix_timestamp upper url_decode
url_encode uuid weekday weekofyear width_bucket xxhash64 year zeroifnull extract
"""
# Ours or Flink's name -> Spark's, same arguments.
RENAMED = {
    "char_to_ascii": "ascii",
    "date": "to_date",
    "json_value": "get_json_object",
    "truncate": "trunc",
    "week": "weekofyear",
}
# Written by a rule of passes.render.
RULED = frozenset(
    {"split_index", "regexp_extract", "to_timestamp_ltz", "sha224", "sha256", "sha384", "sha512"}
)
ROW = frozenset({"rowtime", "rowkey", "rowmeta"})
PLAIN = frozenset(_PLAIN.split()) - RULED
KNOWN = PLAIN | RENAMED.keys() | RULED | ROW | {"cast", "try_cast"}

_AGGREGATES = """
any any_value approx_count_distinct array_agg avg bit_and bit_or bit_xor bool_and bool_or collect_list
collect_set corr count count_if covar_pop covar_samp every first first_value last last_value listagg max
max_by mean median min min_by mode percentile percentile_approx some std stddev stddev_pop stddev_samp
string_agg sum try_avg try_sum var_pop var_samp variance
"""
_WINDOWED = "row_number rank dense_rank lag lead ntile nth_value cume_dist percent_rank"
_GENERATORS = "explode explode_outer posexplode inline stack json_tuple unnest"
_BUILT_AGGREGATES = """
any approx_count_distinct avg bit_and bit_or bit_xor bool_and bool_or corr count count_if covar_pop covar_samp
every max max_by mean min min_by some std stddev stddev_pop stddev_samp sum try_avg try_sum var_pop var_samp
variance
"""
AGGREGATES = frozenset(_AGGREGATES.split())
BUILT_AGGREGATES = frozenset(_BUILT_AGGREGATES.split())
WINDOWED = frozenset(_WINDOWED.split())
GENERATORS = frozenset(_GENERATORS.split())
_ARGUMENTS = {
    "split_index": (3, 3),
    "regexp_extract": (2, 3),
    "json_value": (2, 2),
    "to_timestamp_ltz": (1, 2),
    **dict.fromkeys(BUILT_AGGREGATES, (1, 1)),
    **dict.fromkeys(("corr", "covar_pop", "covar_samp", "max_by", "min_by"), (2, 2)),
    "approx_count_distinct": (1, 2),
}


class Functions:
    """Checks the calls of one clause.

    ``no_aggregates`` says what to do where the clause takes no aggregates; None if it takes them.
    """

    def __init__(self, inputs: list[Input], faults: Faults, no_aggregates: str | None = None) -> None:
        self.inputs = inputs
        self.faults = faults
        self.no_aggregates = no_aggregates

    def check(self, node: exp.Expression) -> bool:
        """Check one call; False if its arguments are no expressions of their own."""
        name, at = str(node.this), place(node, "name_span")
        if name in ROW:
            self._row(node, name)
            return False
        if name in AGGREGATES:
            self._aggregate(node, name)
        elif name in WINDOWED:
            detail = f"The window function {name.upper()} is not supported."
            self.faults.add("unsupported", detail, position=at)
        elif name in GENERATORS:
            detail = f"The table function {name.upper()} is not supported."
            self.faults.add("unsupported", detail, position=at)
        elif name not in KNOWN:
            near = suggestion(name, KNOWN)
            self.faults.add("unknown-function", f"There is no function {name}.", position=at, hint=near)
        else:
            self._arguments(node, name)
        return True

    def _aggregate(self, node: exp.Expression, name: str) -> None:
        at = place(node, "name_span")
        if name not in BUILT_AGGREGATES:
            detail = f"The aggregate {name.upper()} is not supported."
            self.faults.add("unsupported", detail, position=at)
        elif self.no_aggregates is not None:
            detail = f"The aggregate {name.upper()} cannot stand here."
            self.faults.add("not-grouped", detail, position=at, hint=self.no_aggregates)
        elif node.meta.get("distinct"):
            hint = "Spark does not count distinct values of a stream"
            hint = "write approx_count_distinct(…)" if name == "count" else hint
            detail = f"{name.upper()}(DISTINCT …) is not supported on streams."
            self.faults.add("unsupported", detail, position=at, hint=hint)
        elif not (name == "count" and [type(a) for a in node.expressions] == [exp.Star]):
            self._arguments(node, name)

    def _arguments(self, node: exp.Expression, name: str) -> None:
        at = place(node, "name_span")
        count = len(node.expressions)
        if node.meta.get("distinct") or any(isinstance(a, exp.Star) for a in node.expressions):
            what = "DISTINCT" if node.meta.get("distinct") else "*"
            self.faults.add("type-mismatch", f"{name} takes no {what}.", position=at)
        low, high = (1, 1) if name.startswith("sha") and name in RULED else _ARGUMENTS.get(name, (0, count))
        if not low <= count <= high:
            wanted = f"{low}" if low == high else f"{low} to {high}"
            noun = "argument" if high == 1 else "arguments"
            self.faults.add("type-mismatch", f"{name} takes {wanted} {noun}, not {count}.", position=at)

    def _row(self, node: exp.Expression, name: str) -> None:
        at = place(node)
        arguments = node.expressions
        given: Input | None = None
        if len(arguments) > 1 or any(not isinstance(a, exp.Column) for a in arguments):
            detail = f"{name} takes nothing or the alias of a relation."
            self.faults.add("type-mismatch", detail, position=at)
            return
        if arguments:
            wanted = tuple(part for part, _ in arguments[0].meta["parts"])
            given = next((i for i in self.inputs if i.names[-len(wanted) :] == wanted), None)
            if given is None:
                shown = ".".join(wanted)
                hint = suggestion(wanted[-1], [i.names[-1] for i in self.inputs if i.names])
                detail = f"Nothing in FROM is called {shown}."
                self.faults.add("unknown-relation", detail, position=place(arguments[0]), hint=hint)
                return
        elif len(self.inputs) > 1:
            hint = f"write {name}({self.inputs[0].shown})"
            detail = f"{name} needs the alias of one of the joined relations."
            self.faults.add("ambiguous-column", detail, position=at, hint=hint)
            return
        given = given or self.inputs[0]
        if name == "rowmeta" and given.query is not None:
            detail = "rowmeta is known for relations only, not for a sub-select."
            self.faults.add("unsupported", detail, position=at, hint="select it inside and name it with AS")
            return
        node.meta["bound"] = (given.ref, f"__leat_{name}", [])
