"""Steps of a tile program: source that reads the tile ``X`` of a block and changes it.

A step names what it needs; :func:`declarations` has the source for it. Loops run over all
dimensions of the tile, so that every step exists for tiles of one, two and three dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hypothesis import strategies as st

from testing.fuzz.expressions import condition, expression
from testing.fuzz.program import indented

__all__ = ["Frame", "Step", "declarations", "step"]

_AXES = ("i", "j", "h")
_OTHER_DTYPES = ("int8", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64")


@dataclass(frozen=True)
class Frame:
    """The tile of a block: its extents, the dtype of its elements, and the scalars it may use."""

    extents: tuple[int, ...]
    dtype: str
    integer: bool
    scalars: tuple[str, ...] = ()

    @property
    def rank(self) -> int:
        return len(self.extents)

    @property
    def axes(self) -> list[str]:
        """Loop variables."""
        return list(_AXES[: self.rank])

    @property
    def at(self) -> str:
        """The element of the current iteration."""
        return ", ".join(self.axes)

    @property
    def shape(self) -> str:
        return ", ".join(f"B{d}" for d in range(self.rank))

    @property
    def origin(self) -> str:
        """Where the tile begins in a tensor."""
        return ", ".join(f"b{d} * B{d}" for d in range(self.rank))

    def place(self, shifts: tuple[int, ...] = ()) -> str:
        """The element of a tensor that belongs to the current iteration."""
        shifts = shifts or (0,) * self.rank
        parts = zip(self.axes, shifts, strict=True)
        return ", ".join(
            f"b{d} * B{d} + {axis}" + (f" + {shift}" if shift else "")
            for d, (axis, shift) in enumerate(parts)
        )

    def without(self, dim: int) -> str:
        """The index of a result reduced over ``dim``."""
        rest = [axis for d, axis in enumerate(self.axes) if d != dim]
        return ", ".join(rest) if rest else "0"

    @property
    def leaves(self) -> list[str]:
        """Integers that an expression may use."""
        return [*self.axes, "b0", *self.scalars]

    def loop(self, body: str) -> str:
        """A parallel loop over the tile."""
        return f"for {self.at} in T.Parallel({self.shape}, coalesced_width=WIDTH):\n" + indented(
            body
        )

    def elements(self, *, y: str | None = None) -> str:
        """Statements that name the elements an expression uses."""
        return f"x = X[{self.at}]\ny = {y or f'Y[{self.at}]'}"


Step = tuple[frozenset[str], str]


def _needs(names: str, source: str) -> Step:
    return frozenset(names.split()), source


def declarations(frame: Frame, needed: Iterable[str], other: str) -> list[str]:
    """The declarations of everything in ``needed``; ``other`` is the dtype of ``V``."""
    made = {
        "Z": f"Z = T.alloc_fragment(({frame.shape},), D)",
        "S": f"S = T.alloc_shared(({frame.shape},), D)",
        "V": f"V = T.alloc_fragment(({frame.shape},), {other!r})",
    }
    for dim in range(frame.rank):
        rest = [f"B{d}" for d in range(frame.rank) if d != dim] or ["1"]
        made[f"R{dim}"] = f"R{dim} = T.alloc_fragment(({', '.join(rest)},), D)"
    return [made[name] for name in sorted(needed) if name in made]


def _tame(frame: Frame) -> str:
    """Make floats small whole numbers, whose sums are exact in any order."""
    if frame.integer:
        return ""
    element = f"X[{frame.at}]"
    bounded = f"T.max(T.min({element}, T.cast(8, D)), T.cast(-8, D))"
    return frame.loop(f"{element} = T.floor({bounded})") + "\n"


@st.composite
def _elementwise(draw: st.DrawFn, frame: Frame) -> Step:
    expr = draw(expression(frame.leaves, frame.integer))
    shifts = tuple(draw(st.integers(-3, 3)) for _ in frame.extents)
    y = draw(st.sampled_from((None, None, f"A[{frame.place(shifts)}]")))
    if draw(st.booleans()):
        return _needs("", frame.loop(f"{frame.elements(y=y)}\nX[{frame.at}] = {expr}"))
    body = f"{frame.elements(y=y)}\nZ[{frame.at}] = {expr}"
    return _needs("Z", f"{frame.loop(body)}\nT.copy(Z, X)")


@st.composite
def _masked(draw: st.DrawFn, frame: Frame) -> Step:
    inner = f"X[{frame.at}] = {draw(expression(frame.leaves, frame.integer))}"
    body = f"{frame.elements()}\nif {draw(condition(frame.leaves))}:\n{indented(inner)}"
    if draw(st.booleans()):
        other = draw(expression(frame.leaves, frame.integer, depth=1))
        body += f"\nelse:\n    X[{frame.at}] = {other}"
    return _needs("", frame.loop(body))


@st.composite
def _reduction(draw: st.DrawFn, frame: Frame) -> Step:
    kinds = ["max", "min", "absmax", "sum", "abssum"]
    kinds += ["bitor", "bitand", "bitxor"] if frame.integer else []
    kind, dim = draw(st.sampled_from(kinds)), draw(st.integers(0, frame.rank - 1))
    clear, small = draw(st.booleans()), "sum" in kind
    clear = clear or kind == "abssum"  # which has no such option
    combine = draw(st.sampled_from(("T.max", "T.min")))
    used = frame.loop(f"X[{frame.at}] = {combine}(X[{frame.at}], R{dim}[{frame.without(dim)}])")
    source = (
        f"{_tame(frame) if small else ''}T.fill(R{dim}, 1)\n"
        f"T.reduce_{kind}(X, R{dim}, dim={dim}{'' if clear else ', clear=False'})\n{used}"
    )
    return _needs(f"R{dim}", source)


@st.composite
def _reducer(draw: st.DrawFn, frame: Frame) -> Step:
    kinds = ["max", "min", "sum"] + (["bitor", "bitand", "bitxor"] if frame.integer else [])
    kind, dim = draw(st.sampled_from(kinds)), draw(st.integers(0, frame.rank - 1))
    rest = [f"B{d}" for d in range(frame.rank) if d != dim] or ["1"]
    start = draw(st.sampled_from(("", ", T.cast(5, D)")))
    name = f"acc_{kind}{dim}"
    at = frame.without(dim)
    source = (
        f"{_tame(frame) if kind == 'sum' else ''}"
        f"{name} = T.alloc_reducer(({', '.join(rest)},), D, op={kind!r})\n"
        f"T.reducer_init({name}{start})\n"
        f"{frame.loop(f'T.reducer_update({name}[{at}], X[{frame.at}])')}\n"
        f"T.finalize_reducer({name}, R{dim})\n"
        f"{frame.loop(f'X[{frame.at}] = T.min(X[{frame.at}], R{dim}[{at}])')}"
    )
    return _needs(f"R{dim}", source)


@st.composite
def _scan(draw: st.DrawFn, frame: Frame) -> Step:
    kind = draw(st.sampled_from(("cummax", "cumsum")))
    dim, reverse = draw(st.integers(0, frame.rank - 1)), draw(st.booleans())
    tame = _tame(frame) if kind == "cumsum" else ""
    if draw(st.booleans()):
        return _needs("", f"{tame}T.{kind}(X, dim={dim}, reverse={reverse})")
    return _needs("Z", f"{tame}T.{kind}(X, Z, dim={dim}, reverse={reverse})\nT.copy(Z, X)")


@st.composite
def _loop(draw: st.DrawFn, frame: Frame) -> Step:
    heads = (
        "T.serial(3)",
        "T.serial(0)",
        "T.unroll(2)",
        "T.serial(1, 6, 2)",
        "T.unroll(1, 5, 3)",
        "range(4, 0, -2)",
        "T.serial(b0 % 3)",
        "T.serial(b0, b0 + 2)",
    )
    expr = draw(expression([*frame.leaves, "r"], frame.integer, depth=1))
    body = frame.loop(f"{frame.elements()}\nX[{frame.at}] = {expr}")
    if draw(st.booleans()):  # a loop whose length depends on the one around it
        body = f"for q in T.serial(r):\n{indented(body)}"
    return _needs("", f"for r in {draw(st.sampled_from(heads))}:\n{indented(body)}")


@st.composite
def _while(draw: st.DrawFn, frame: Frame) -> Step:
    start, end = draw(st.integers(-2, 3)), draw(st.integers(0, 5))
    stop = draw(st.sampled_from(("", "break", "continue")))
    expr = draw(expression([*frame.leaves, "n"], frame.integer, depth=1))
    body = frame.loop(f"{frame.elements()}\nX[{frame.at}] = {expr}")
    jump = f"    if n == 2:\n        {stop}\n" if stop else ""
    source = (
        f'n = T.alloc_var("int32", init={start})\nwhile n < {end}:\n    n = n + 1\n'
        f"{jump}{indented(body)}"
    )
    return _needs("", source)


@st.composite
def _pipeline(draw: st.DrawFn, frame: Frame) -> Step:
    trips, dim = draw(st.integers(0, 4)), draw(st.integers(0, frame.rank - 1))
    origin = [f"b{d} * B{d}" for d in range(frame.rank)]
    origin[dim] = f"(b{dim} + k) * B{dim}"
    element = f"X[{frame.at}]"
    body = frame.loop(f"{element} = T.min({element} + S[{frame.at}], T.cast(50, D))")
    guard = draw(st.sampled_from(("", "if k != 1:", "if k + b0 > 1:")))
    body = f"{guard}\n{indented(body)}" if guard else body
    inner = f"T.copy(A[{', '.join(origin)}], S)\n{body}"
    return _needs("S", f"for k in T.Pipelined({trips}, num_stages=STAGES):\n{indented(inner)}")


@st.composite
def _shift(draw: st.DrawFn, frame: Frame) -> Step:
    shifts = tuple(draw(st.integers(-3, 3)) for _ in frame.extents)
    element = f"X[{frame.at}]"
    return _needs("", frame.loop(f"{element} = T.max({element}, A[{frame.place(shifts)}])"))


@st.composite
def _gather(draw: st.DrawFn, frame: Frame) -> Step:
    """Read the tile at other places, also at ones that its data say."""
    places = []
    for d, axis in enumerate(frame.axes):
        forms = (
            axis,
            f"({axis} * 3 + {draw(st.integers(0, 5))}) % B{d}",
            f"B{d} - 1 - {axis}",
            f"T.min({axis} + 1, B{d} - 1)",
            f"T.cast(S[{frame.at}], 'int32') % B{d}",
            f"({' + '.join(frame.axes)}) % B{d}",
            f"{axis} // 2",
        )
        places.append(draw(st.sampled_from(forms)))
    read = frame.loop(f"X[{frame.at}] = S[{', '.join(places)}]")
    return _needs("S", f"T.copy(X, S)\n{read}")


@st.composite
def _convert(draw: st.DrawFn, frame: Frame) -> Step:
    if draw(st.booleans()):
        return _needs("V", "T.copy(X, V)\nT.copy(V, X)")
    element = draw(st.sampled_from(("x", "y", "x - y", "T.max(x, y)")))
    body = f"{frame.elements()}\nV[{frame.at}] = {element}"
    return _needs("V", f"{frame.loop(body)}\nT.copy(V, X)")


@st.composite
def _view(draw: st.DrawFn, frame: Frame) -> Step:
    size = " * ".join(f"B{d}" for d in range(frame.rank))
    maker = draw(st.sampled_from(("T.view", "T.reshape")))
    value = draw(st.sampled_from(("flat[f] + T.cast(f % 3, D)", "T.max(flat[f], T.cast(2, D))")))
    if frame.integer and draw(st.booleans()):
        head = f'flat = T.view(S, ({size} * {int(frame.dtype.strip("uint")) // 8},), "uint8")'
        loop = f"for f in T.Parallel({size}):\n    flat[f] = flat[f] ^ T.cast(f % 5, 'uint8')"
    else:
        head = f"flat = {maker}(S, ({size},))"
        loop = f"for f in T.Parallel({size}):\n    flat[f] = {value}"
    return _needs("S", f"T.copy(X, S)\n{head}\n{loop}\nT.copy(S, X)")


@st.composite
def _region(draw: st.DrawFn, frame: Frame) -> Step:
    """Copy a part of the tile to another place, and fill a part."""
    source, target, filled = [], [], []
    for extent in frame.extents:
        size = draw(st.integers(1, extent))
        starts = [draw(st.integers(0, extent - size)) for _ in range(3)]
        for part, start in zip((source, target, filled), starts, strict=True):
            part.append(f"{start}:{start + size}")
    if draw(st.booleans()):
        filled[0] = str(draw(st.integers(0, frame.extents[0] - 1)))
    value = draw(st.sampled_from(("3", "T.cast(b0, D)", "0")))
    return _needs(
        "S",
        f"T.copy(X, S)\nT.copy(X[{', '.join(source)}], S[{', '.join(target)}])\n"
        f"T.fill(S[{', '.join(filled)}], {value})\nT.copy(S, X)",
    )


@st.composite
def _logical(draw: st.DrawFn, frame: Frame) -> Step:
    kind = draw(st.sampled_from(("any_of", "all_of")))
    expr = draw(expression(frame.leaves, frame.integer, depth=1))
    body = frame.loop(f"{frame.elements()}\nX[{frame.at}] = {expr}")
    negated = draw(st.sampled_from(("", "not ")))
    return _needs("", f"if {negated}T.{kind}(X):\n{indented(body)}")


@st.composite
def _variable(draw: st.DrawFn, frame: Frame) -> Step:
    trips = draw(st.sampled_from(("4", "b0 + 1", "(b0 + 2) % 3")))
    change = draw(st.sampled_from(("total + T.cast(r, D)", "T.max(total, T.cast(r * 2, D))")))
    first = ", ".join("0" for _ in frame.extents)
    start = draw(st.sampled_from(("init=1", f"init=X[{first}]")))
    element = f"X[{frame.at}]"
    return _needs(
        "",
        f"total = T.alloc_var(D, {start})\nfor r in T.serial({trips}):\n    total = {change}\n"
        f"{frame.loop(f'{element} = T.max({element}, total)')}",
    )


@st.composite
def _serial(draw: st.DrawFn, frame: Frame) -> Step:
    """Element by element, in order, the innermost loop as vectors or expanded."""
    last = draw(st.sampled_from(("T.serial", "T.vectorized", "T.unroll", "range")))
    *outer, inner = frame.axes
    lines = [f"for {axis} in T.serial(B{d}):" for d, axis in enumerate(outer)]
    lines.append(f"for {inner} in {last}(B{frame.rank - 1}):")
    expr = draw(expression(frame.leaves, frame.integer, depth=1))
    nest = "\n".join("    " * level + line for level, line in enumerate(lines))
    body = f"{frame.elements(y=f'S[{frame.at}]')}\nS[{frame.at}] = {expr}"
    nest += "\n" + indented(body, frame.rank)
    return _needs("S", f"T.copy(X, S)\n{nest}\nT.copy(S, X)")


def _transpose() -> st.SearchStrategy[Step]:
    return st.just(_needs("S Z", "T.copy(X, Z)\nT.transpose(Z, S)\nT.copy(S, X)"))


_STEPS: tuple[Callable[[Frame], st.SearchStrategy[Step]], ...] = (
    _elementwise,
    _masked,
    _reduction,
    _reducer,
    _scan,
    _loop,
    _while,
    _pipeline,
    _shift,
    _gather,
    _convert,
    _view,
    _region,
    _logical,
    _variable,
    _serial,
)


def step(frame: Frame) -> st.SearchStrategy[Step]:
    """A random step."""
    choices = [make(frame) for make in _STEPS]
    if frame.rank > 1 and frame.extents[-1] == frame.extents[-2]:
        choices.append(_transpose())
    return st.one_of(*choices)
