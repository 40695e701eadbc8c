"""How operators between two values are spelt, in our language and in Spark's alike."""

from __future__ import annotations

from sqlglot import exp

OPERATORS: dict[type[exp.Expression], str] = {
    exp.Or: "OR",
    exp.And: "AND",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.NullSafeEQ: "<=>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
    exp.BitwiseAnd: "&",
    exp.Add: "+",
    exp.Sub: "-",
    exp.DPipe: "||",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "DIV",
}
LIKES: dict[type[exp.Expression], str] = {exp.Like: "LIKE", exp.ILike: "ILIKE", exp.RegexpLike: "RLIKE"}
