"""Thread programs: values of threads, exchanged through shared memory, shuffles and votes.

Every thread holds one value ``v``. Only whole warps shuffle, and no thread reads what another may
be writing.
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from testing.fuzz.expressions import condition, expression
from testing.fuzz.program import Hints, Program, indented

__all__ = ["thread_programs"]

_DTYPES = ("int32", "uint32", "int64", "int16", "float32")
_THREADS = ((32,), (64,), (96,), (16, 2), (8, 4, 2), (4, 8, 3))
_INDICES = ["t", "b"]
Steps = st.SearchStrategy[str]


@st.composite
def _assigned(draw: st.DrawFn, integer: bool, depth: int = 2) -> str:
    """``v`` from itself and the thread number."""
    expr = draw(expression(_INDICES, integer, depth))
    return f"x = v\ny = T.cast(t % 7, D)\nv = {expr}"


def _staged(integer: bool) -> Steps:
    places = st.sampled_from(("TOTAL - 1 - t", "(t + 1) % TOTAL", "(t * 5 + 3) % TOTAL", "t // 2"))
    combined = st.sampled_from(("S[{0}]", "v + S[{0}]", "T.max(v, S[{0}])"))
    return st.builds(
        lambda place, form: (
            f"S[t] = v\nT.sync_threads()\nv = {form.format(place)}\nT.sync_threads()"
        ),
        places,
        combined,
    )


@st.composite
def _shuffled(draw: st.DrawFn, integer: bool) -> str:
    width = draw(st.sampled_from((2, 4, 8, 16, 32)))
    name = draw(st.sampled_from(("shfl_xor", "shfl_up", "shfl_down", "shfl_sync")))
    return f"v = T.{name}(v, {draw(st.integers(0, width - 1))}, {width})"


@st.composite
def _voted(draw: st.DrawFn, integer: bool) -> str:
    chosen = draw(st.sampled_from(("v > T.cast(2, D)", "t % 3 == 1", "t < 40", "b == 0")))
    vote = draw(
        st.sampled_from(
            (
                "T.any_sync({0})",
                "T.all_sync({0})",
                "T.syncthreads_count({0})",
                "T.syncthreads_and({0})",
                "T.syncthreads_or({0})",
                "T.get_lane_idx()",
                "T.get_warp_idx()",
            )
        )
    )
    return f"v = v + T.cast({vote.format(chosen)}, D)"


@st.composite
def _reduced(draw: st.DrawFn, integer: bool) -> str:
    kinds = ("max", "min") + (("sum", "bitand", "bitor") if integer else ())
    return f"v = T.warp_reduce_{draw(st.sampled_from(kinds))}(v)"


@st.composite
def _diverged(draw: st.DrawFn, integer: bool) -> str:
    """A branch that some threads take, maybe with a vote among them."""
    inner = draw(_assigned(integer, 1))
    if draw(st.booleans()):
        inner += "\nv = v + T.cast(T.any_sync(v > T.cast(3, D)), D)"
    source = f"if {draw(condition(_INDICES, data=False))}:\n{indented(inner)}"
    if draw(st.booleans()):
        source += f"\nelse:\n{indented(draw(_assigned(integer, 1)))}"
    return source


@st.composite
def _looped(draw: st.DrawFn, integer: bool) -> str:
    """A loop of all threads with barriers, or one that every thread runs as often as it likes."""
    if draw(st.booleans()):
        trips = draw(st.sampled_from(("3", "b + 1", "0")))
        body = draw(st.one_of(_staged(integer), _shuffled(integer)))
        return f"for r in T.serial({trips}):\n{indented(body)}"
    stop = draw(st.sampled_from(("", "if r == 3:\n    break\n", "if r % 2 == 1:\n    continue\n")))
    return f"for r in T.serial(t % 6):\n{indented(stop + draw(_assigned(integer, 1)))}"


@st.composite
def _while(draw: st.DrawFn, integer: bool) -> str:
    body = f"n = n - {draw(st.integers(1, 3))}\n{draw(_assigned(integer, 1))}"
    return f'n = T.alloc_var("int32", init=0)\nn = t % 5\nwhile n > 0:\n{indented(body)}'


@st.composite
def _local(draw: st.DrawFn, integer: bool) -> str:
    kind = draw(st.sampled_from(("T.serial", "T.unroll", "T.vectorized")))
    return (
        "own = T.alloc_local((4,), D)\n"
        f"for e in {kind}(4):\n    own[e] = v + T.cast(e, D)\n"
        f"for e in T.serial(4):\n    v = T.max(v, own[3 - e])"
    )


@st.composite
def _tiled(draw: st.DrawFn, integer: bool) -> str:
    """Tile constructs between thread code."""
    body = draw(
        st.sampled_from(
            (
                "for f in T.Parallel(TOTAL):\n    S[f] = T.max(S[f], T.cast(f % 5, D))",
                "T.fill(S, 2)",
                "T.copy(A[b * TOTAL], S)",
                "T.cummax(S, dim=0)",
            )
        )
    )
    guard = draw(st.sampled_from(("", "if b == 0:\n", "if t == 5:\n")))
    body = guard + (indented(body) if guard else body)
    after = "T.sync_threads()\nv = S[TOTAL - 1 - t]\nT.sync_threads()"
    return f"S[t] = v\nT.sync_threads()\n{body}\n{after}"


@st.composite
def _counted(draw: st.DrawFn, integer: bool) -> str:
    """Atomics on shared memory."""
    kind = draw(st.sampled_from(("add", "max", "min") if integer else ("max", "min")))
    place = draw(st.sampled_from(("0", "t % 3", "t // 32")))
    return (
        "S[t] = T.cast(0, D)\nT.sync_threads()\n"
        f"T.atomic_{kind}(S[{place}], v)\nT.sync_threads()\nv = S[t]\nT.sync_threads()"
    )


_STEPS: tuple[Callable[[bool], Steps], ...] = (
    _assigned,
    _staged,
    _shuffled,
    _voted,
    _reduced,
    _diverged,
    _looped,
    _while,
    _local,
    _tiled,
    _counted,
)
_NUMBER = {
    1: "t = T.get_thread_binding(0)",
    2: "tx, ty, _ = T.get_thread_bindings()\nt = ty * {0} + tx",
    3: "tx, ty, tz = T.get_thread_bindings()\nt = (tz * {1} + ty) * {0} + tx",
}


@st.composite
def thread_programs(draw: st.DrawFn) -> Program:
    """A random thread program."""
    dtype, threads = draw(st.sampled_from(_DTYPES)), draw(st.sampled_from(_THREADS))
    integer, total = dtype != "float32", 1
    for extent in threads:
        total *= extent
    one = st.one_of(*(make(integer) for make in _STEPS))
    steps = draw(st.lists(one, min_size=1, max_size=5))
    lines = [
        _NUMBER[len(threads)].format(*threads),
        "S = T.alloc_shared((TOTAL,), D)",
        "v = T.alloc_var(D, init=0)",
        "if b * TOTAL + t < N:",
        "    v = A[b * TOTAL + t]",
        *steps,
        "if b * TOTAL + t < N:",
        "    C[b * TOTAL + t] = v",
    ]
    body = "with T.Kernel(T.ceildiv(N, TOTAL), threads=THREADS) as b:\n"
    sizes = [{"N": draw(st.integers(1, 200))} for _ in range(draw(st.integers(1, 2)))]
    return Program(
        constants={"D": dtype, "TOTAL": total},
        parameters=("A: T.Tensor((N,), D)", "C: T.Tensor((N,), D)"),
        body=body + indented("\n".join(lines)),
        symbols=("N",),
        calls=tuple(sizes),
        hints=Hints(threads=threads[0] if len(threads) == 1 else threads),
        values=draw(st.sampled_from(("small", "extreme" if integer else "special"))),
        free_threads=False,
    )
