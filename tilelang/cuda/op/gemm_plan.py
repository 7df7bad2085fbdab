"""Which matrix instruction a GEMM uses, how warps share the tile, and where operands then live."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from tilelang.errors import TraceError
from tilelang.ir.expr import const_int, dtype_of
from tilelang.ir.op import GemmWarpPolicy, TileCall
from tilelang.ir.region import region_extents
from tilelang.layout.distribution import COPY, Distribution, dense

__all__ = ["GemmPlan", "Instruction", "plan_gemm"]

_NAMES = {
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "tf32",
    "float64": "f64",
    "int8": "s8",
    "uint8": "u8",
    "int4": "s4",
    "uint4": "u4",
    "float8_e4m3fn": "e4m3",
    "float8_e5m2": "e5m2",
}
_BITS = {
    "f16": 16,
    "bf16": 16,
    "tf32": 32,
    "f64": 64,
    "s8": 8,
    "u8": 8,
    "s4": 4,
    "u4": 4,
    "e4m3": 8,
    "e5m2": 8,
}


@dataclass(frozen=True)
class Instruction:
    """One ``mma.sync`` shape with its operand dtypes, and the accumulator's dtype in the IR."""

    m: int
    n: int
    k: int
    a: str
    b: str
    c: str
    accumulator: str

    @property
    def name(self) -> str:
        """Name of the row, ``m16n8k16_f32_f16_f16_f32``."""
        return f"m{self.m}n{self.n}k{self.k}_{self.c}_{self.a}_{self.b}_{self.c}"

    @property
    def pack(self) -> int:
        """Neighbours along k in one register (64-bit registers for float64)."""
        return max(1, 32 // _BITS[self.a])

    @property
    def k_registers(self) -> int:
        """Registers along k."""
        return self.k // (4 * self.pack)

    @property
    def m_registers(self) -> int:
        """Registers along m."""
        return self.m // 8

    @property
    def a_elements(self) -> int:
        """Elements of A a thread passes."""
        return self.pack * self.k_registers * self.m_registers

    @property
    def b_elements(self) -> int:
        """Elements of B a thread passes."""
        return self.pack * self.k_registers

    @property
    def c_elements(self) -> int:
        """Elements of C a thread holds."""
        return 2 * self.m_registers


@dataclass(frozen=True)
class GemmPlan:
    """How one GEMM is done by the warps of a block.

    Parameters
    ----------
    instruction : Instruction
    m, n, k : int
        Extents of the tile.
    warp_m, warp_n : int
        Warps along m and n; further warps of the block are idle.
    """

    instruction: Instruction
    m: int
    n: int
    k: int
    warp_m: int
    warp_n: int

    @property
    def m_tiles(self) -> int:
        """Instructions along m in one warp."""
        return self.m // self.warp_m // self.instruction.m

    @property
    def n_tiles(self) -> int:
        """Instructions along n in one warp."""
        return self.n // self.warp_n // self.instruction.n

    @property
    def k_tiles(self) -> int:
        """Instructions along k."""
        return self.k // self.instruction.k

    @property
    def threads(self) -> int:
        """Threads that take part."""
        return 32 * self.warp_m * self.warp_n

    @cached_property
    def a(self) -> Distribution:
        """A of shape (m, k) in registers."""
        i = self.instruction
        threads = [(1, i.pack, 4), (0, 1, 8), (0, self.m // self.warp_m, self.warp_m)]
        slots = [(1, 1, i.pack), (0, 8, i.m_registers), (1, 4 * i.pack, i.k_registers)]
        slots += [(1, i.k, self.k_tiles), (0, i.m, self.m_tiles)]
        return Distribution(
            (self.m, self.k), dense([*threads, (COPY, 1, self.warp_n)]), dense(slots)
        )

    @cached_property
    def b(self) -> Distribution:
        """B of shape (k, n) in registers."""
        i = self.instruction
        threads = [(0, i.pack, 4), (1, 1, 8), (COPY, 1, self.warp_m)]
        threads.append((1, self.n // self.warp_n, self.warp_n))
        slots = [(0, 1, i.pack), (0, 4 * i.pack, i.k_registers)]
        slots += [(0, i.k, self.k_tiles), (1, i.n, self.n_tiles)]
        return Distribution((self.k, self.n), dense(threads), dense(slots))

    @cached_property
    def c(self) -> Distribution:
        """The accumulator of shape (m, n)."""
        i = self.instruction
        threads = [(1, 2, 4), (0, 1, 8), (0, self.m // self.warp_m, self.warp_m)]
        threads.append((1, self.n // self.warp_n, self.warp_n))
        slots = [(1, 1, 2), (0, 8, i.m_registers), (1, i.n, self.n_tiles), (0, i.m, self.m_tiles)]
        return Distribution((self.m, self.n), dense(threads), dense(slots))

    def operands(self, call: TileCall) -> Mapping[str, Distribution]:
        """The distribution of every operand as the program shapes it."""
        wanted = {"A": self.a, "B": self.b, "C": self.c}
        turned = {"A": call.attrs.transpose_A, "B": call.attrs.transpose_B, "C": False}
        result = {}
        for name, tile in wanted.items():
            rank = len(region_extents(call.operand(name)))
            axes = {0: rank - 1, 1: rank - 2} if turned[name] else {0: rank - 2, 1: rank - 1}
            shape = [1] * (rank - 2) + [0, 0]
            for axis, dim in axes.items():
                shape[dim] = tile.shape[axis]
            result[name] = tile.onto(axes, shape)
        return result


def plan_gemm(call: TileCall, threads: int, arch: int) -> tuple[GemmPlan | None, str]:
    """Choose the instruction and the warps of a GEMM.

    Parameters
    ----------
    threads : int
        Threads of a block.
    arch : int
        Compute capability, such as 80 or 90.

    Returns
    -------
    The plan and ``""``, or None and the reason why no matrix instruction fits.
    """
    c = call.operand("C")
    m, n = (const_int(e) or 0 for e in region_extents(c)[-2:])
    k = const_int(region_extents(call.operand("A"))[-2 if call.attrs.transpose_A else -1]) or 0
    a, b = (_NAMES.get(dtype_of(call.operand(name))) for name in "AB")
    if a is None or b is None:
        return None, f"{dtype_of(call.operand('A'))} has no matrix instruction"
    accumulators = _accumulators(a, dtype_of(c))
    if accumulators is None:
        return None, f"no instruction multiplies {a} into {dtype_of(c)}"
    if threads % 32:
        return None, f"{threads} threads are no whole number of warps"
    shapes = _shapes(a, arch)
    if not shapes:
        return None, f"sm_{arch} has no matrix instruction for {a}"
    fitting = [s for s in shapes if k % s[2] == 0 and m % s[0] == 0 and n % s[1] == 0]
    if not fitting:
        return None, f"{m} x {n} x {k} is no multiple of the instruction's {shapes[0]}"
    shape = fitting[0]
    instruction = Instruction(*shape, a, b, *accumulators)
    split = _warps(call, m, n, threads // 32, instruction)
    if split is None:
        return None, f"a tile of {m} x {n} cannot be shared among the warps"
    return GemmPlan(instruction, m, n, k, *split), ""


def _accumulators(a: str, c: str) -> tuple[str, str] | None:
    """The accumulator of the instruction: its PTX and IR names; narrow results use a wider one."""
    if a in ("s8", "u8", "s4", "u4"):
        return ("s32", "int32") if c == "int32" else None
    if a == "f64":
        return ("f64", "float64") if c == "float64" else None
    if a == "f16" and c == "float16":
        return "f16", "float16"
    return ("f32", "float32") if c in ("float32", "float16", "bfloat16") else None


def _shapes(a: str, arch: int) -> list[tuple[int, int, int]]:
    """Instruction shapes for an operand dtype, largest k first."""
    if a == "f16":
        return [(16, 8, 16), (16, 8, 8)] if arch >= 80 else [(16, 8, 8)]
    if a in ("s4", "u4"):
        return [(16, 8, 64), (16, 8, 32)] if arch >= 80 else [(8, 8, 32)]
    if arch < 80:
        return [(8, 8, 16)] if a in ("s8", "u8") else []
    if a == "bf16":
        return [(16, 8, 16), (16, 8, 8)]
    if a == "tf32":
        return [(16, 8, 8), (16, 8, 4)]
    if a == "f64":
        return [(8, 8, 4)]
    if a in ("s8", "u8"):
        return [(16, 8, 32), (16, 8, 16)]
    return [(16, 8, 32)] if arch >= 89 else []


def _warps(
    call: TileCall, m: int, n: int, warps: int, instruction: Instruction
) -> tuple[int, int] | None:
    """Warps along m and n by the policy; fewer warps where the tile is too small for all."""
    policy = GemmWarpPolicy(call.attrs.policy)
    for count in range(warps, 0, -1):
        if warps % count:
            continue
        try:
            split = policy.compute_warp_partition(m, n, count)
        except TraceError:
            continue
        if m % (split[0] * instruction.m) == 0 and n % (split[1] * instruction.n) == 0:
            return split
    return (1, 1)
