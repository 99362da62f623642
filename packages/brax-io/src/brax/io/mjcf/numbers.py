"""Numbers in the text of a model."""


def number(word: str) -> float | None:
    """Return the number that a word represents, None for any other word.

    MuJoCo reads hexadecimal numbers too.
    """
    try:
        return float.fromhex(word) if "x" in word.lower() else float(word)
    except (ValueError, OverflowError):
        return None


def number_or_zero(word: str) -> float:
    """Return `number`, or 0 for any other word, which MuJoCo's compiler reports itself."""
    return number(word) or 0.0
