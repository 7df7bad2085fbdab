"""The numeric contract as passes: what a simplifier or a compiler could break becomes opaque.

Each pass keeps a rule of the contract; a backend runs those its own language does not keep. What
they leave are plain nodes whose meaning every backend agrees on, and calls of the operators
``tl.num.*`` (:mod:`.ops`).
"""

from tilelang.transform.numerics.casts import legalize_conversions
from tilelang.transform.numerics.data_integers import wrap_data_integers
from tilelang.transform.numerics.floats import legalize_minmax, unpack_pairs
from tilelang.transform.numerics.promote import promote_narrow
from tilelang.transform.numerics.temporaries import keep_temporaries

__all__ = [
    "keep_temporaries",
    "legalize_conversions",
    "legalize_minmax",
    "promote_narrow",
    "unpack_pairs",
    "wrap_data_integers",
]
