"""Which pieces of a text claim something that can be wrong: a number, or that a thing is always or never so."""

import re

NUMBER = re.compile(r"(?<![\w.])(?<![A-Za-z]-)\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
REFERENCE = re.compile(
    r"\{measure\}`[^`]*`|\b(?:[Ll]abs?|lessons?|decks?) \d\d(?:(?:,| and| to|–) \d\d)*|\b\d\d [a-z]+-[a-z]+|\b\d\d_\w+"
)
COUNTED = "two|three|four|five|six|seven|eight|nine|ten|twelve|sixteen|(?:a )?(?:hundred|thousand|million)"
AMOUNT = re.compile(
    rf"\b(?:twice|thrice|half|halves|halved|quarters?|doubles?|doubled|tenths?|twelfth|orders of magnitude|factor of \w+"
    rf"|tens|hundreds|thousands|per cent|percent|a third of|one third|two thirds"
    rf"|(?:{COUNTED})(?:fold| times| seconds| minutes| hours| milliseconds))\b",
    re.IGNORECASE,
)
UNIVERSAL = re.compile(
    r"\b(?:always|never|all(?!-| the same)|every(?:where|body|one|thing)?|none|nothing|nobody|nowhere|cannot|only|must"
    r"|exactly|whatever|any|impossible|certain|guaranteed?)\b",
    re.IGNORECASE,
)


def numbers(text: str) -> list[float]:
    """The numbers that stand in a text as digits, labs' numbers and measured ones apart."""
    found = NUMBER.findall(REFERENCE.sub(" ", text))
    return [float(one.rstrip(",").replace(",", "")) for one in found]


def claims(text: str) -> bool:
    """Whether a piece of text holds a number, an amount in words, or a word that allows no exception."""
    bare = REFERENCE.sub(" ", text)
    return any(pattern.search(bare) for pattern in (NUMBER, AMOUNT, UNIVERSAL))
