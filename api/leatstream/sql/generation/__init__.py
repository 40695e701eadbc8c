"""Statements to text: from what the parser gives, without the text that it was read from.

``parse(generate(parse(x)))`` gives what ``parse(x)`` gives. The only text of the user's that gets through as
it was written is what the parsed form keeps as text: strings, numbers, bare words of a WITH list, hex digits,
and column types that are none (others are written from their parsed form).
"""
