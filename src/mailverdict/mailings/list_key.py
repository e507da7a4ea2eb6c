"""A key of a list, which tells whether two lists are one list at two times, and holds no address.

    40,000 mailboxes in May                    3f0a91...   256 digits
    the same list in June, 1,200 new ones      3f0a91...   nearly all digits are the same
    another list                               b07c44...   one digit of sixteen is, by chance

It is a sketch of the set of its mailboxes, from which the part that two lists share is estimated.
One permutation hashing (Li, Owen and Zhang 2012): each mailbox falls into one of 256 bins by its
hash, and of each bin the smallest hash counts. Empty bins take that of another one (Shrivastava
2017). Of a hash only four bits are kept (Li and König 2010), a digit of the key, so that one of
sixteen addresses of the world fits a digit as well as the one in the list. In a short list an
address has several digits, and fewer others fit them all; a very short one has no key.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

KEY_DIGITS = 256
FEWEST = 10  # mailboxes
HASH_KEY = "mailverdict list"  # of SipHash, 16 octets
SAME_LIST = 0.25  # lists that share at least this part of their mailboxes are one list at two times
OTHER_LIST = 0.1  # lists that share less are two


def key_of_list(mailboxes: pa.StringArray) -> str:
    """The key of a set of mailboxes; empty for fewer than ten.

    >>> key = key_of_list(pa.array([f"user{n}@firm.example" for n in range(10)]))
    >>> len(key), shared_part(key, key)
    (256, 1.0)
    """
    texts = mailboxes.to_numpy(zero_copy_only=False)
    if len(texts) < FEWEST:
        return ""
    hashes = pd.util.hash_array(texts, hash_key=HASH_KEY, categorize=False)
    bins = (hashes >> np.uint64(56)).astype(np.int64)
    largest = np.iinfo(np.uint64).max
    smallest = np.full(KEY_DIGITS, largest)
    np.minimum.at(smallest, bins, hashes)
    is_filled = smallest < largest
    # The bin that each digit is taken from.
    source = np.arange(KEY_DIGITS)
    empty = np.flatnonzero(~is_filled)
    attempt = 0
    while len(empty):
        attempt += 1
        source[empty] = mix(empty * 2**20 + attempt) % KEY_DIGITS
        empty = empty[~is_filled[source[empty]]]
    digits = smallest[source] & np.uint64(15)
    return "".join(f"{digit:x}" for digit in digits.tolist())


def mix(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """A hash of numbers: that of SplitMix64 (Steele, Lea and Flood 2014)."""
    z = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = z ^ (z >> np.uint64(30))
    z = z * np.uint64(0xBF58476D1CE4E5B9)
    z = z ^ (z >> np.uint64(27))
    z = z * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return np.asarray(z >> np.uint64(1), np.int64)


def shared_part(key: str, other: str) -> float:
    """The part of all mailboxes of two lists that both have (the Jaccard index), estimated.

    NaN if a key is not known. Of two keys without anything in common one digit of sixteen is equal
    by chance.
    """
    if not key or not other:
        return float("nan")
    equal = sum(digit == other_digit for digit, other_digit in zip(key, other, strict=True))
    by_chance = 1 / 16
    part = (equal / KEY_DIGITS - by_chance) / (1 - by_chance)
    return max(0.0, part)
