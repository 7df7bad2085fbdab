"""The shared-memory swizzles that hardware knows."""

from __future__ import annotations

import enum

__all__ = ["SwizzleMode"]


class SwizzleMode(enum.IntEnum):
    """Width of the block of bytes within which 16-byte vectors are permuted.

    The values are those of the CUDA driver's ``CUtensorMapSwizzle``; matrix instructions encode
    the same modes differently in their descriptors.
    """

    NONE = 0
    SWIZZLE_32B = 1
    SWIZZLE_64B = 2
    SWIZZLE_128B = 3

    @classmethod
    def from_ordinal(cls, ordinal: int) -> SwizzleMode:
        """The mode with the value ``ordinal`` (0 to 3)."""
        return cls(ordinal)

    def is_none(self) -> bool:
        """Whether nothing is permuted."""
        return self is SwizzleMode.NONE

    def is_swizzle_32b(self) -> bool:
        """Whether vectors are permuted within 32 bytes."""
        return self is SwizzleMode.SWIZZLE_32B

    def is_swizzle_64b(self) -> bool:
        """Whether vectors are permuted within 64 bytes."""
        return self is SwizzleMode.SWIZZLE_64B

    def is_swizzle_128b(self) -> bool:
        """Whether vectors are permuted within 128 bytes."""
        return self is SwizzleMode.SWIZZLE_128B

    def swizzle_byte_size(self) -> int:
        """Bytes within which vectors are permuted: 1 (none), 32, 64 or 128."""
        return 16 << self if self else 1

    def swizzle_atom_size(self) -> int:
        """The same in 16-byte vectors: 1, 2, 4 or 8."""
        return 1 << self

    def smem_alignment(self) -> int:
        """Alignment in bytes of a shared buffer with this swizzle: 128, 256, 512 or 1024."""
        return 128 << self

    def wgmma_layout_type(self) -> int:
        """The layout field of a Hopper warpgroup MMA descriptor (PTX ISA, matrix descriptor)."""
        return (4 - self) % 4

    def tcgen05_layout_type(self) -> int:
        """The swizzle field of a Blackwell tcgen05 descriptor (PTX ISA, shared descriptor)."""
        return (4 - self) % 4 * 2
