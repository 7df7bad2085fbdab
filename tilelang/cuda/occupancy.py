"""How many blocks of a kernel a multiprocessor holds, and what limits them.

Figures from the table "Technical Specifications per Compute Capability" of the CUDA C++ programming
guide.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Occupancy", "occupancy"]

# By architecture: threads, blocks and KiB of shared memory of a multiprocessor.
_MULTIPROCESSOR = {
    70: (2048, 32, 96), 75: (1024, 16, 64), 80: (2048, 32, 164), 86: (1536, 16, 100),
    87: (1536, 16, 164), 89: (1536, 24, 100), 90: (2048, 32, 228), 100: (2048, 32, 228),
    120: (1536, 24, 100),
}  # fmt: skip
_REGISTERS = 65536
_WARP = 32
_REGISTER_UNIT = 256  # registers of a warp come in such pieces
_WARP_UNIT = 4  # and are spread over four schedulers
_SHARED_UNIT = 128
_SYSTEM_SHARED_ARCH = 80  # from here on every block has 1 KiB of the system's
_SYSTEM_SHARED = 1024


@dataclass(frozen=True)
class Occupancy:
    """Blocks that a multiprocessor holds at a time.

    Parameters
    ----------
    blocks : int
    warps, max_warps : int
        Warps of these blocks, and how many there could be.
    limit : str
        What there is not enough of for another block.
    """

    blocks: int
    warps: int
    max_warps: int
    limit: str


def occupancy(arch: int, threads: int, registers: int, shared_bytes: int) -> Occupancy:
    """Occupancy of a kernel.

    Parameters
    ----------
    arch : int
        90 for ``sm_90``.
    threads : int
        Of a block.
    registers : int
        Of a thread.
    shared_bytes : int
        Of a block, static and dynamic.
    """
    known = max((a for a in _MULTIPROCESSOR if a <= arch), default=min(_MULTIPROCESSOR))
    max_threads, max_blocks, shared_kib = _MULTIPROCESSOR[known]
    warps = -(-threads // _WARP)
    bounds = {"blocks": max_blocks, "threads": max_threads // (warps * _WARP)}
    if registers:
        of_warp = -(-registers * _WARP // _REGISTER_UNIT) * _REGISTER_UNIT
        resident = _REGISTERS // of_warp // _WARP_UNIT * _WARP_UNIT
        bounds["registers"] = resident // warps
    system = _SYSTEM_SHARED if known >= _SYSTEM_SHARED_ARCH else 0
    taken = -(-(shared_bytes + system) // _SHARED_UNIT) * _SHARED_UNIT
    if shared_bytes:
        bounds["shared memory"] = shared_kib * 1024 // taken
    limit = min(bounds, key=lambda name: bounds[name])
    blocks = bounds[limit]
    return Occupancy(blocks, blocks * warps, max_threads // _WARP, limit)
