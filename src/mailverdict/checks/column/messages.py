"""Why the refused rows of a column are refused: the table of faults, a row of it for all of them at a time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..faults import MAX_OCTETS, SYNTAX_FAULTS, TOO_LONG, SyntaxFault, describe_character
from ..syntax import explain_refusal
from .cut import Positions, bools

__all__ = ["fault_messages"]

ASCII_FAULTS = tuple(fault for fault in SYNTAX_FAULTS if not fault.foreign)


class Book:
    """Sentences and their codes, in order of appearance."""

    def __init__(self) -> None:
        self.codes: dict[str, int] = {}

    def code(self, sentence: str) -> int:
        """Give the code of a sentence, a new one for a new one."""
        return self.codes.setdefault(sentence, len(self.codes))


def fault_messages(texts: pa.StringArray | pa.ChunkedArray, ok: pa.BooleanArray) -> pa.DictionaryArray:
    """Say of every refused row why it is refused, in the words of `observe_syntax`.

    Parameters
    ----------
    texts : pyarrow.StringArray or pyarrow.ChunkedArray
        The addresses, as given to `observe_column`.
    ok : pyarrow.BooleanArray
        What `observe_column` found.

    Returns
    -------
    pyarrow.DictionaryArray
        ``dictionary<int32, string>``; null where ok.

    Examples
    --------
    >>> from mailverdict.checks.column import observe_column
    >>> texts = pa.array(["ada@web.de", "ada@web"])
    >>> fault_messages(texts, observe_column(texts).ok).to_pylist()
    [None, 'There is no dot in the domain.']
    """
    book = Book()
    codes = np.full(len(texts), book.code(TOO_LONG), np.int32)
    short = pc.and_not(pc.less_equal(pc.binary_length(texts), MAX_OCTETS), ok)
    held = texts.filter(short)
    held = held.combine_chunks() if isinstance(held, pa.ChunkedArray) else held
    codes[bools(short)] = explain_short(held.cast(pa.string()), book)
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=bools(ok)), pa.array(list(book.codes), pa.string()))


def explain_short(texts: pa.StringArray, book: Book) -> Positions:
    """Give the codes of the sentences for refused texts that are not too long."""
    codes = np.empty(len(texts), np.int32)
    ascii_only = pc.string_is_ascii(texts)
    left, held = np.flatnonzero(bools(ascii_only)), texts.filter(ascii_only)
    for fault in ASCII_FAULTS:
        found = pc.match_substring_regex(held, as_re2(fault))
        codes[left[bools(found)]] = code_fault(fault, held.filter(found), book)
        left, held = left[~bools(found)], held.filter(pc.invert(found))
    rest = np.concatenate([left, np.flatnonzero(~bools(ascii_only))])
    codes[rest] = [book.code(explain_refusal(text)) for text in texts.take(pa.array(rest)).to_pylist()]
    return codes


def as_re2(fault: SyntaxFault) -> str:
    """Write the pattern as RE2 reads it."""
    return "(?s)" + fault.pattern.replace(r"\Z", r"\z")


def code_fault(fault: SyntaxFault, texts: pa.StringArray, book: Book) -> Positions | int:
    """Give one code for all `texts`, or one for each where the sentence names a character."""
    if "{" not in fault.sentence:
        return book.code(fault.sentence)
    chars = pc.struct_field(pc.extract_regex(texts, as_re2(fault)), "char").dictionary_encode()
    named = [book.code(fault.sentence.format(char=describe_character(char))) for char in chars.dictionary.to_pylist()]
    codes: Positions = np.array(named, np.int32)[chars.indices.to_numpy()]
    return codes
