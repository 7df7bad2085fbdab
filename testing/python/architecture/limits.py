"""Size limits of the source, and the named exceptions with their reasons.

An exception must still exceed its limit; one that no longer does fails the test and is removed.
"""

MAX_FILE = 700
MAX_FUNCTION = 80
MAX_CLASS = 300
MAX_NATIVE_FILE = 800

# path relative to the repository -> why it may be longer
FILES: dict[str, str] = {}
# "path:qualified.name" -> why it may be longer
FUNCTIONS: dict[str, str] = {}
CLASSES: dict[str, str] = {
    "tilelang/language/eager/rewrite.py:Rewriter": "a visitor: one short method a kind of syntax",
}
