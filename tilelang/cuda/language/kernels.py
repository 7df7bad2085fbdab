"""Forms of launch that only NVIDIA GPUs have: clusters, and kernels given as CUDA text."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tilelang.cuda.source_kernels import kernel_names, template_kernel, with_c_linkage
from tilelang.errors import TraceError, TraceTypeError
from tilelang.ir import intrin
from tilelang.ir.span import user_span
from tilelang.language.eager.mode import declares_kernel
from tilelang.language.kernel import Kernel, KernelLaunchFrame

__all__ = ["CUDASourceCodeKernel", "ClusterKernel"]

Cluster = int | Sequence[int]


@declares_kernel
def ClusterKernel(
    *blocks: Any,
    cluster_dims: Cluster,
    threads: int | Sequence[int] | None = None,
    prelude: str | None = None,
) -> KernelLaunchFrame:
    """``T.Kernel`` whose blocks run in clusters: together, on neighbouring multiprocessors (sm_90).

    Parameters
    ----------
    cluster_dims : int or sequence of int
        Blocks of a cluster along x, y, z. The grid must be a multiple of it. One block is an
        ordinary launch.
    *blocks, threads, prelude
        See ``T.Kernel``.

    Raises
    ------
    TraceError
        If an extent of the cluster is below 1.

    Examples
    --------
    >>> with T.ClusterKernel(8, cluster_dims=2, threads=128) as bx:  # doctest: +SKIP
    ...     rank = T.block_rank_in_cluster()
    """
    frame = Kernel(*blocks, threads=threads, prelude=prelude)
    frame.annotations.update(_cluster("T.ClusterKernel", cluster_dims))
    return frame


@declares_kernel
def CUDASourceCodeKernel(
    *blocks: Any,
    threads: int | Sequence[int] | None = None,
    source_code_or_path: str | os.PathLike[str],
    entry_name: str = "main_kernel",
    cluster_dims: Cluster | None = None,
    prelude: str | None = None,
) -> None:
    """Launch a kernel that is written in CUDA.

    Parameters
    ----------
    *blocks, threads, prelude
        See ``T.Kernel``.
    source_code_or_path : str or path
        The text, or a file that holds it.
    entry_name : str
        A ``__global__`` function of the text; it gets C linkage. Its parameters are, in this order,
        those of the program (tensors as pointers, outputs included), its workspaces, and the
        variables of its shapes that are no parameters.
    cluster_dims : int or sequence of int, optional
        See :func:`ClusterKernel`.

    Raises
    ------
    TraceError
        If the file does not exist, or the text has no kernel of that name that can be launched.

    Examples
    --------
    >>> T.CUDASourceCodeKernel(  # doctest: +SKIP
    ...     T.ceildiv(N, 128), threads=128, source_code_or_path=text, entry_name="scale"
    ... )
    """
    what = "T.CUDASourceCodeKernel"
    source = _text(what, source_code_or_path)
    names = kernel_names(source)
    if entry_name not in names:
        listed = ", ".join(names) or "none"
        raise TraceError(
            f"{what}: the source has no __global__ function '{entry_name}'; it has: {listed}",
            user_span(),
        )
    if template_kernel(source, entry_name):
        raise TraceError(
            f"{what}: '{entry_name}' is a template; launch a function that is none", user_span()
        )
    frame = Kernel(*blocks, threads=threads, prelude=prelude)
    frame.annotations["tl.foreign_entry"] = entry_name
    if cluster_dims is not None:
        frame.annotations.update(_cluster(what, cluster_dims))
    with frame:
        intrin.get("CUDASourceCodeKernel").emit(with_c_linkage(source, entry_name))


def _cluster(what: str, dims: Cluster) -> dict[str, list[int]]:
    """The annotation of a cluster; none for a single block."""
    sizes = [dims] if isinstance(dims, int) else list(dims)
    if not 1 <= len(sizes) <= 3 or any(not isinstance(n, int) or n < 1 for n in sizes):
        raise TraceError(
            f"{what}: cluster_dims takes 1 to 3 ints above 0, found {dims!r}", user_span()
        )
    sizes += [1] * (3 - len(sizes))
    return {"tl.cluster": sizes} if sizes != [1, 1, 1] else {}


def _text(what: str, source: str | os.PathLike[str]) -> str:
    if not isinstance(source, (str, os.PathLike)):
        raise TraceTypeError(
            f"{what}: expected CUDA text or the path of a file, found {type(source).__name__}",
            user_span(),
        )
    # Text of a kernel has braces; a path may have them too, but then the file exists.
    if isinstance(source, str) and ("{" in source or "\n" in source) and not _is_file(source):
        return source
    if not _is_file(source):
        raise TraceError(f"{what}: there is no file {os.fspath(source)!r}", user_span())
    return Path(source).read_text(encoding="utf-8")


def _is_file(source: str | os.PathLike[str]) -> bool:
    try:
        return Path(source).is_file()
    except OSError:  # longer than a name can be
        return False
