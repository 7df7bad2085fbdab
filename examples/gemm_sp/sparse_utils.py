"""Operands of ``T.gemm_sp``: random 2:4 sparse matrices, and their compression.

A 2:4 sparse matrix keeps at most two of every four consecutive elements along K (at most one of two
for 32-bit elements). It is stored as the kept elements, half as many, and metadata: four bits a
group with the positions of what is kept, packed into the elements of an integer matrix from the low
bits up.
"""

from __future__ import annotations

import torch

import tilelang.language as T

__all__ = ["compress", "get_e_factor", "randint_semi_sparse", "randn_semi_sparse"]

_BITS_OF_A_GROUP = 4


def _group(dtype: torch.dtype) -> int:
    """Elements in a group along K."""
    return 2 if dtype.itemsize == 4 else 4


def get_e_factor(a_dtype: T.AnyDType, meta_dtype: T.AnyDType) -> int:
    """Elements of A along K that one metadata element describes.

    Parameters
    ----------
    a_dtype, meta_dtype : dtype
        Of the sparse operand and of its metadata, as TileLang, torch or text.

    Returns
    -------
    int
        Groups in a metadata element times the length of a group: 16 for float16 with int16.
    """
    groups = T.dtype(meta_dtype).bits // _BITS_OF_A_GROUP
    return groups * (2 if T.dtype(a_dtype).bits == 32 else 4)


def compress(
    A: torch.Tensor, meta_dtype: torch.dtype = torch.int16
) -> tuple[torch.Tensor, torch.Tensor]:
    """Split a 2:4 sparse matrix into kept elements and metadata.

    Parameters
    ----------
    A : torch.Tensor, (M, K)
        K must be a multiple of ``get_e_factor(A.dtype, meta_dtype)``.
    meta_dtype : torch.dtype
        Integer dtype of the metadata.

    Returns
    -------
    tuple of torch.Tensor
        Kept elements (M, K/2) and metadata (M, K / factor).

    Raises
    ------
    ValueError
        If K does not fit, or a group holds more nonzeros than may be kept.
    """
    M, K = A.shape
    group, bits = _group(A.dtype), meta_dtype.itemsize * 8
    factor = bits // _BITS_OF_A_GROUP * group
    if K % factor:
        raise ValueError(
            f"K must be a multiple of {factor} for {A.dtype} and {meta_dtype}; got {K}"
        )
    used = (A.float() if A.is_floating_point() else A).view(M, -1, group) != 0
    if int(used.sum(-1).max()) > group // 2:
        raise ValueError(f"a group of {group} elements has more than {group // 2} nonzeros")
    # Nonzeros first, zeros fill up, both in their order.
    kept = torch.argsort(used, dim=-1, descending=True, stable=True)[..., : group // 2]
    kept = kept.sort(dim=-1).values
    same_size = {1: torch.int8, 2: torch.int16, 4: torch.int32}[A.itemsize]
    values = A.view(same_size).view(M, -1, group).gather(-1, kept).reshape(M, K // 2)
    # 32-bit elements count as two halves: element 0 is 0 and 1, element 1 is 2 and 3.
    positions = torch.cat([kept * 2, kept * 2 + 1], dim=-1) if group == 2 else kept
    codes = positions[..., 0] | positions[..., 1] << 2
    codes = codes.view(M, -1, bits // _BITS_OF_A_GROUP)
    shifts = torch.arange(codes.shape[-1], device=A.device) * _BITS_OF_A_GROUP
    words = (codes << shifts).sum(-1)
    words = torch.where(words >= 1 << bits - 1, words - (1 << bits), words)
    return values.view(A.dtype), words.to(meta_dtype)


def randn_semi_sparse(
    M: int,
    K: int,
    dtype: torch.dtype = torch.float16,
    device: torch.device | str | None = None,
    transposed: bool = False,
) -> torch.Tensor:
    """A normally distributed (M, K) matrix, 2:4 sparse along K; (K, M) if ``transposed``."""
    return _sparsify(torch.randn(M, K, device=device), dtype, transposed)


def randint_semi_sparse(
    M: int,
    K: int,
    low: int,
    high: int,
    dtype: torch.dtype = torch.int32,
    device: torch.device | str | None = None,
    transposed: bool = False,
) -> torch.Tensor:
    """Integers from ``low`` up to ``high`` in an (M, K) matrix, 2:4 sparse along K."""
    return _sparsify(torch.randint(low, high, (M, K), device=device), dtype, transposed)


def _sparsify(dense: torch.Tensor, dtype: torch.dtype, transposed: bool) -> torch.Tensor:
    group = _group(dtype)
    groups = dense.view(dense.shape[0], -1, group)
    order = torch.rand(groups.shape, device=dense.device).argsort(dim=-1)
    sparse = (groups * (order < group // 2)).view(dense.shape).to(dtype)
    return sparse.T.contiguous() if transposed else sparse
