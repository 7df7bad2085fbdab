"""Pass configurations: the keys, their types and defaults, and how a pass reads them.

A pass configuration is a mapping from :class:`PassConfigKey` (or its string) to a value, given to
``tilelang.jit(pass_configs=...)``, ``tilelang.compile`` or ``T.annotate_pass_configs``::

    @tilelang.jit(pass_configs={tilelang.PassConfigKey.TL_ENABLE_FAST_MATH: True})
    def kernel(...): ...

:func:`normalize_pass_configs` is the one gate: it turns enum keys into strings, refuses unknown
keys and values of the wrong type, and fills the defaults that environment variables set. TVM's
``PassContext`` only ever sees the keys that TVM itself declares (:func:`tvm_pass_configs`).
"""

from __future__ import annotations

import difflib
import functools
import warnings
from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any

from tilelang.env import env
from tilelang.errors import PassConfigError
from tilelang.ir.span import user_frame

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "PassConfigKey",
    "normalize_pass_configs",
    "pass_flag",
    "pass_option",
    "tvm_pass_configs",
]

_SIMPLIFY_OPTIONS: dict[str, bool] = {
    "transitively_prove_inequalities": False,
    "convert_boolean_to_and_of_ors": False,
    "apply_constraints_to_boolean_branches": False,
    # Options of older TVM simplifiers that have no counterpart in this one.
    "propagate_knowns_to_prove_conditional": False,
    "propagate_knowns_to_simplify_expressions": False,
    "enable_simplify_let_inline": True,
}
_TVM_SIMPLIFY_OPTIONS = tuple(_SIMPLIFY_OPTIONS)[:3]


class PassConfigKey(str, Enum):
    """Keys of pass configurations. Each member is its own string and knows type and default.

    A row is ``NAME = key, accepted types, default, what it does [, allowed values]``; a member
    without types is an option inside another key's mapping.
    """

    kinds: tuple[type, ...]
    default: Any
    doc: str
    choices: frozenset[Any]

    def __new__(
        cls,
        key: str,
        kinds: type | tuple[type, ...] = (),
        default: Any = None,
        doc: str = "",
        choices: Any = (),
    ) -> Self:
        member = str.__new__(cls, key)
        member._value_ = key
        member.kinds = kinds if isinstance(kinds, tuple) else (kinds,)
        member.default = default
        member.doc = doc
        member.choices = frozenset(choices)
        return member

    # A key must find the entry of its string in a mapping and the other way round.
    __hash__ = str.__hash__
    __str__ = str.__str__

    # fmt: off
    TL_SIMPLIFY = "tl.Simplify", dict, None, "options of the simplifier, by the names below"
    TL_SIMPLIFY_TRANSITIVELY_PROVE_INEQUALITIES = "transitively_prove_inequalities"
    TL_SIMPLIFY_CONVERT_BOOLEAN_TO_AND_OF_ORS = "convert_boolean_to_and_of_ors"
    TL_SIMPLIFY_APPLY_CONSTRAINTS_TO_BOOLEAN_BRANCHES = "apply_constraints_to_boolean_branches"
    TL_SIMPLIFY_PROPAGATE_KNOWNS_TO_PROVE_CONDITIONAL = "propagate_knowns_to_prove_conditional"
    TL_SIMPLIFY_PROPAGATE_KNOWNS_TO_SIMPLIFY_EXPRESSIONS = (
        "propagate_knowns_to_simplify_expressions"
    )
    TL_SIMPLIFY_ENABLE_LET_INLINE = "enable_simplify_let_inline"

    TL_DISABLE_BUFFER_INIT_CHECK = (
        "tl.disable_buffer_init_check", bool, False, "no warning on a read before any write",
    )
    TL_DISABLE_DATA_RACE_CHECK = (
        "tl.disable_data_race_check", bool, True, "no heuristic race check of parallel loops",
    )
    TL_DISABLE_PRELOWER_SEMANTIC_CHECK = (
        "tl.disable_prelower_semantic_check", bool, False, "skip the checks before lowering",
    )
    TL_DISABLE_WARP_SPECIALIZED = (
        "tl.disable_warp_specialized", bool, False, "no warp specialisation",
    )
    TL_ENABLE_FAST_MATH = (
        "tl.enable_fast_math", bool, False, "approximate math, flushed subnormals",
    )
    TL_PTXAS_REGISTER_USAGE_LEVEL = (
        "tl.ptxas_register_usage_level", int, None, "ptxas register usage level, 0 to 10",
        range(11),
    )
    TL_DEVICE_COMPILE_FLAGS = (
        "tl.device_compile_flags", (str, list, tuple), None, "extra device compiler flags",
    )
    TL_EMIT_LINE_DIRECTIVES = (
        "tl.emit_line_directives", bool, False, "#line directives to the Python source",
    )
    TL_CONFIG_INDEX_BITWIDTH = (
        "tl.config_index_bitwidth", int, 32, "width of index arithmetic in bits", (32, 64),
    )
    TL_ENABLE_REDUCER_PLAN_VERBOSE = (
        "tl.enable_reducer_plan_verbose", bool, False, "log how reducers are placed",
    )
    TL_REDUCER_FORCE_BASELINE = (
        "tl.reducer_force_baseline", bool, False, "keep reducers in their canonical storage",
    )
    TL_LAYOUT_COST_MODEL = (
        "tl.layout_cost_model", str, "register-count", "objective of free layout choices",
        ("register-count", "io-aware"),
    )
    TL_DISABLE_TMA_LOWER = "tl.disable_tma_lower", bool, False, "no TMA for plain copies"
    TL_DISABLE_SAFE_MEMORY_ACCESS = (
        "tl.disable_safe_memory_legalize", bool, False, "no bounds guards",
    )
    TL_DISABLE_VECTORIZE_256 = (
        "tl.disable_vectorize_256", bool, False, "no 256-bit loads and stores",
    )
    TL_ENABLE_ASYNC_COPY = (
        "tl.enable_async_copy", bool, True, "asynchronous copies inside pipelined loops",
    )
    TL_ENABLE_LOWER_LDGSTG = (
        "tl.enable_lower_ldgstg", bool, False, "explicit ldg/stg instructions",
    )
    TL_ENABLE_LOWER_LDGSTG_PREDICATED = (
        "tl.enable_lower_ldgstg_predicated", bool, False, "explicit predicated ldg/stg",
    )
    TL_ENABLE_VECTORIZE_PLANNER_VERBOSE = (
        "tl.enable_vectorize_planner_verbose", bool, False, "log the chosen vector widths",
    )
    TL_DISABLE_WGMMA = "tl.disable_wgmma", bool, False, "no Hopper warpgroup MMA"
    TL_DEBUG_MERGE_SHARED_MEMORY_ALLOCATIONS = (
        "tl.debug_merge_shared_memory_allocations", bool, False, "log the shared memory plan",
    )
    TL_ENABLE_AGGRESSIVE_SHARED_MEMORY_MERGE = (
        "tl.enable_aggressive_shared_memory_merge", bool, False, "pack shared memory tighter",
    )
    TL_DISABLE_SHARED_MEMORY_REUSE = (
        "tl.disable_shared_memory_reuse", bool, False, "every shared buffer has its own bytes",
    )
    TL_DISABLE_SHUFFLE_ELECT = (
        "tl.disable_shuffle_elect", bool, False, "no elect instruction to pick one lane",
    )
    TL_DISABLE_LOOP_UNSWITCHING = (
        "tl.disable_loop_unswitching", bool, False, "keep invariant conditions inside loops",
    )
    TL_LOOP_UNSWITCHING_ALLOW_NON_TRIVIAL_ELSE = (
        "tl.loop_unswitching_allow_non_trivial_else", bool, False,
        "unswitch loops whose other branch has effects",
    )
    TL_IF_STMT_BINDING_INLINE_REPLAYABLE_BINDS = (
        "tl.if_stmt_binding_inline_replayable_binds", bool, True,
        "duplicate scalar bindings into guarded statements",
    )
    TL_DISABLE_THREAD_STORAGE_SYNC = (
        "tl.disable_thread_storage_sync", bool, False, "insert no barriers",
    )
    TL_FORCE_LET_INLINE = "tl.force_let_inline", bool, False, "inline every binding first"
    TL_AST_PRINT_ENABLE = "tl.ast_print_enable", bool, False, "print the program tree"
    TL_LAYOUT_VISUALIZATION_ENABLE = (
        "tl.layout_visualization_enable", bool, False, "draw the inferred layouts",
    )
    TL_LAYOUT_VISUALIZATION_FORMATS = (
        "tl.layout_visualization_formats", (str, list, tuple), "txt",
        "formats of the drawings: txt, png, pdf, svg, all",
    )
    TL_STORAGE_REWRITE_DETECT_INPLACE = (
        "tl.storage_rewrite_detect_inplace", bool, False, "reuse an operand's storage in place",
    )
    TL_DISABLE_OUT_OF_BOUND_WARNING = (
        "tl.disable_out_of_bound_warning", bool, True, "no warning on provably bad indices",
    )
    TL_ENABLE_DUMP_IR = "tl.enable_dump_ir", bool, False, "write the program after every pass"
    TL_DUMP_IR_DIR = "tl.dump_ir_path", str, "./dump_ir", "folder of the dumps"
    TL_PASS_PROFILE = "tl.pass_profile", bool, False, "time every pass"
    TL_PASS_PROFILE_THRESHOLD_MS = (
        "tl.pass_profile_threshold_ms", (int, float), 0, "list only passes slower than this",
    )

    TIR_ENABLE_EQUIV_TERMS_IN_CSE = "tir.enable_equiv_terms_in_cse_tir", bool, True, "no effect"
    TIR_DISABLE_CSE = "tirx.disable_cse_tir", bool, False, "no common subexpression elimination"
    TIR_SIMPLIFY = "tirx.Simplify", (bool, dict), None, "options of TVM's simplifier"
    TIR_DISABLE_STORAGE_REWRITE = (
        "tirx.disable_storage_rewrite", bool, False, "no storage rewriting",
    )
    TIR_DISABLE_VECTORIZE = "tirx.disable_vectorize", bool, False, "no vector code"
    TIR_USE_ASYNC_COPY = "tirx.use_async_copy", bool, True, "asynchronous copies"
    TIR_ENABLE_DEBUG = "tirx.enable_debug", bool, False, "debug information in generated code"
    TIR_MERGE_STATIC_SMEM = "tirx.merge_static_smem", bool, True, "merge static shared memory"
    TIR_ADD_LOWER_PASS = (
        "tirx.add_lower_pass", (list, tuple), None, "extra (phase, pass) pairs of TVM's pipeline",
    )
    TIR_NOALIAS = "tirx.noalias", bool, True, "arguments do not alias"

    CUDA_KERNELS_OUTPUT_DIR = (
        "cuda.kernels_output_dir", str, "", "keep the device compiler's inputs and outputs here",
    )
    # fmt: on


# Accepted, warned about, and dropped or kept as said.
_DEPRECATED = {
    PassConfigKey.TL_DISABLE_TMA_LOWER: "use T.copy(..., disable_tma=True) for each copy instead",
    PassConfigKey.TIR_ENABLE_EQUIV_TERMS_IN_CSE: "it has no effect: TVM has no such option",
}
_RETIRED = {
    "tl.disable_fast_math": "it has no effect: precise math is the default",
    "tir.detect_global_barrier": "it has no effect",
}


@functools.cache
def _keys() -> Mapping[str, PassConfigKey]:
    return {key.value: key for key in PassConfigKey if key.kinds}


@functools.cache
def _tvm_options() -> frozenset[str]:
    """Names TVM's own PassContext accepts."""
    import tvm  # the table of keys is read by tools that never build IR

    return frozenset(str(name) for name in tvm.get_global_func("transform.ListConfigs")())


def normalize_pass_configs(
    pass_configs: Mapping[str | PassConfigKey, Any] | None,
) -> dict[str, Any]:
    """Check a pass configuration and return it with plain string keys.

    TVM's options are accepted under their own names and under the older prefix ``tir.``.

    Parameters
    ----------
    pass_configs : mapping or None
        Keys and values as the user wrote them.

    Raises
    ------
    PassConfigError
        On an unknown key (with the closest known ones) and on a value of the wrong type.
    """
    if pass_configs is not None and not isinstance(pass_configs, Mapping):
        raise PassConfigError(
            f"pass_configs must be a mapping from keys to values, "
            f"found {type(pass_configs).__name__}"
        )
    normalized: dict[str, Any] = {}
    for raw, value in (pass_configs or {}).items():
        if not isinstance(raw, str):
            raise PassConfigError(
                f"a pass config key is a string or PassConfigKey, found {type(raw).__name__}"
            )
        name = _canonical_name(str(raw))
        note = _DEPRECATED.get(name) or _RETIRED.get(name)  # type: ignore[call-overload]  # str keys
        if note:
            text = f"pass config '{name}' is deprecated; {note}"
            _warn(text)
        if name not in _RETIRED:
            normalized[name] = _checked(name, value)
        if name in (PassConfigKey.TL_SIMPLIFY, PassConfigKey.TIR_SIMPLIFY):
            _warn_without_counterpart(name, value)
    for name, value in _environment_defaults().items():
        normalized.setdefault(name, value)
    return normalized


def _canonical_name(name: str) -> str:
    if name in _keys() or name in _RETIRED:
        return name
    renamed = f"tirx.{name[4:]}" if name.startswith("tir.") else name
    if renamed in _keys() or renamed in _tvm_options():
        return renamed
    if name in _SIMPLIFY_OPTIONS:
        raise PassConfigError(
            f"'{name}' is an option of '{PassConfigKey.TL_SIMPLIFY}': "
            f"write {{'{PassConfigKey.TL_SIMPLIFY}': {{'{name}': ...}}}}"
        )
    known = [*_keys(), *_tvm_options()]
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    hint = f"; did you mean {', '.join(close)}?" if close else "; see tilelang.PassConfigKey"
    raise PassConfigError(f"unknown pass config '{name}'{hint}")


def _checked(name: str, value: Any) -> Any:
    key = _keys().get(name)
    if key is None:  # TVM's own option; TVM checks the value when a context is entered
        return value
    right_type = isinstance(value, key.kinds) and (bool in key.kinds or not isinstance(value, bool))
    if value is None and key.default is None:
        return None
    if not right_type:
        expected = " or ".join(kind.__name__ for kind in key.kinds)
        raise PassConfigError(
            f"pass config '{name}' must be {expected}, found {type(value).__name__} {value!r}"
        )
    if key.choices and value not in key.choices:
        allowed = ", ".join(map(str, sorted(key.choices)))
        raise PassConfigError(f"pass config '{name}' must be one of {allowed}; found {value!r}")
    if dict in key.kinds and isinstance(value, dict):
        return _checked_simplify(name, value)
    if key is PassConfigKey.TL_PASS_PROFILE_THRESHOLD_MS and not 0 <= value < float("inf"):
        raise PassConfigError(f"pass config '{name}' must be a finite non-negative number")
    if list in key.kinds and not isinstance(value, str):
        return list(value)
    return value


def _checked_simplify(name: str, options: Mapping[Any, Any]) -> dict[str, bool]:
    for option, value in options.items():
        if option not in _SIMPLIFY_OPTIONS:
            close = difflib.get_close_matches(str(option), _SIMPLIFY_OPTIONS, n=2, cutoff=0.4)
            hint = f"; did you mean {', '.join(close)}?" if close else ""
            raise PassConfigError(f"'{name}' has no option '{option}'{hint}")
        if not isinstance(value, bool):
            raise PassConfigError(
                f"option '{option}' of '{name}' must be bool, found {type(value).__name__}"
            )
    return {str(option): value for option, value in options.items()}


def _warn(text: str) -> None:
    """A deprecation warning at the line of the user that led here."""
    frame = user_frame()
    if frame is None:
        warnings.warn(text, DeprecationWarning, stacklevel=3)
    else:
        warnings.warn_explicit(
            text, DeprecationWarning, frame.f_code.co_filename, frame.f_lineno, module=__name__
        )


def _warn_without_counterpart(name: str, options: Any) -> None:
    for option, value in options.items() if isinstance(options, Mapping) else ():
        if option not in _TVM_SIMPLIFY_OPTIONS and value != _SIMPLIFY_OPTIONS[option]:
            text = f"option '{option}' of '{name}' has no effect: this TVM has no counterpart"
            _warn(text)


def _environment_defaults() -> dict[str, Any]:
    found: dict[str, Any] = {}
    if model := env.TILELANG_LAYOUT_COST_MODEL.strip():
        found[str(PassConfigKey.TL_LAYOUT_COST_MODEL)] = _checked("tl.layout_cost_model", model)
    if (check := env.data_race_check()) is not None:
        found[str(PassConfigKey.TL_DISABLE_DATA_RACE_CHECK)] = not check
    return found


def pass_option(configs: Mapping[str, Any] | None, key: PassConfigKey) -> Any:
    """The value of ``key`` in a normalised configuration, or its default.

    ``tl.Simplify`` comes back complete: options that were not given have their defaults.
    """
    value = (configs or {}).get(key, key.default)
    if key is PassConfigKey.TL_SIMPLIFY:
        return {**_SIMPLIFY_OPTIONS, **(value or {})}
    return value


def pass_flag(configs: Mapping[str, Any] | None, key: PassConfigKey) -> bool:
    """:func:`pass_option` for the keys that are switches."""
    assert key.kinds == (bool,), f"{key} is no switch"
    return bool(pass_option(configs, key))


def tvm_pass_configs(configs: Mapping[str, Any] | None) -> dict[str, Any]:
    """The part of a normalised configuration that TVM's ``PassContext`` understands.

    The options of ``tl.Simplify`` and ``tirx.Simplify`` go to the simplifier of this TVM,
    ``tirx.StmtSimplify``.
    """
    found: dict[str, Any] = {}
    for name, value in (configs or {}).items():
        if name in _tvm_options() and value is not None:
            found[name] = value
    for name in (PassConfigKey.TIR_SIMPLIFY, PassConfigKey.TL_SIMPLIFY):
        given = (configs or {}).get(name)
        if isinstance(given, Mapping):
            options = {opt: val for opt, val in given.items() if opt in _TVM_SIMPLIFY_OPTIONS}
            found.setdefault("tirx.StmtSimplify", {}).update(options)
    return found
