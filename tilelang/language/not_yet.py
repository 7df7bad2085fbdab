"""Names of the public interface that this version does not have, and why.

Each of them needs a code generator that is not there yet. ``T.<name>`` gives a :class:`NotYet`
object, so that programs that only import it load; using it raises
:class:`~tilelang.errors.UnsupportedError` with the reason. None of them is in ``__all__``.
"""

from __future__ import annotations

from typing import Any, NoReturn

from tilelang.errors import UnsupportedError
from tilelang.ir.span import user_span

__all__ = ["NOT_YET", "NotYet"]

_EMITTER = "writes matrix instructions by hand and comes with the code generator of its backend"
_TILE_OP = "is a tile operation on asynchronous units and comes with the CUDA backend"
_BLACKWELL = "needs tcgen05 matrix units and comes with the sm_100 pipeline of the CUDA backend"
_LAUNCH = "is a form of launch that only the CUDA backend has and comes with it"
_LAYOUT = "describes registers of a matrix instruction and comes with the backend that issues it"

#: Reasons by name, per dialect; ``common`` is the neutral surface.
NOT_YET: dict[str, dict[str, str]] = {
    "common": {},
    "cuda": {
        "SparseTensorCoreIntrinEmitter": _EMITTER,
        "TCGEN05DescriptorParams": _BLACKWELL,
        "TCGEN05TensorCoreIntrinEmitter": _EMITTER,
        "TensorCoreIntrinEmitterSM120": _EMITTER,
        "TensorCoreIntrinEmitterWithLadderTransform": _EMITTER,
        "WGMMADescriptorParams": _LAYOUT,
        "WGMMATensorCoreIntrinEmitter": _EMITTER,
        "WGSparseTensorCoreIntrinEmitter": _EMITTER,
        "WarpSpecialize": _LAUNCH,
        "WarpSpecializeFrame": _LAUNCH,
        "compute_gmma_descriptor": _LAYOUT,
        "compute_umma_descriptor": _BLACKWELL,
        "copy_cluster": _TILE_OP,
        "make_blockscaled_gemm_layout": _BLACKWELL,
        "mma_gemm_blockscaled": _TILE_OP,
        "tcgen05_gemm": _BLACKWELL,
        "tcgen05_gemm_blockscaled": _BLACKWELL,
        "tcgen05_gemm_sp": _BLACKWELL,
        "tcgen05_mma": _BLACKWELL,
        "tcgen05_mma_blockscaled": _BLACKWELL,
        "tma_copy": _TILE_OP,
        "tma_gather4": _TILE_OP,
        "tma_gather4_bytes": _TILE_OP,
        "tma_scatter4": _TILE_OP,
        "wgmma_gemm": _TILE_OP,
        "wgmma_gemm_sp": _TILE_OP,
        "wgmma_mma": _TILE_OP,
        "ws": _LAUNCH,
    },
    "rocm": {
        "MatrixCoreIntrinEmitter": _EMITTER,
        "MatrixCorePreshuffleIntrinEmitter": _EMITTER,
        "WMMAIntrinEmitter": _EMITTER,
        "get_mma_micro_size": _LAYOUT,
        "make_mfma_swizzle_layout": _LAYOUT,
        "mfma_store_index_map": _LAYOUT,
        "mfma_store_index_map_32x32": _LAYOUT,
    },
}


class NotYet:
    """Stands for a missing name; calling it or reading an attribute raises UnsupportedError."""

    def __init__(self, name: str, reason: str) -> None:
        self._name = name
        self._reason = reason

    def _refuse(self) -> NoReturn:
        raise UnsupportedError(
            f"T.{self._name} is not in this version: it {self._reason}", user_span()
        )

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        self._refuse()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self._refuse()

    def __repr__(self) -> str:
        return f"<T.{self._name}: not in this version, {self._reason}>"
