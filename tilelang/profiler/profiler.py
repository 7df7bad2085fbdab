"""Checking and timing a kernel on inputs made for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from tilelang.engine.launch_plan import LaunchPlan
from tilelang.engine.param import KernelParam
from tilelang.errors import ArgumentValueError
from tilelang.profiler.bench import Backend, ReturnMode, do_bench
from tilelang.profiler.supply import make_inputs
from tilelang.utils.tensor import TensorSupplyType, torch_assert_close

__all__ = ["Profiler"]

Program = Callable[..., Any]


@dataclass
class Profiler:
    """Runs a kernel on generated or given inputs, compares it with a reference and times it.

    Made by ``kernel.get_profiler()``.

    Parameters
    ----------
    params : sequence of KernelParam
        All parameters, outputs included.
    result_idx : sequence of int
        Positions of the parameters the kernel allocates and returns.
    supply_type : TensorSupplyType
        How inputs are filled; see :func:`~tilelang.profiler.supply.make_inputs`.
    adapter : KernelAdapter, optional
        What launches the kernel.

    Examples
    --------
    >>> profiler = kernel.get_profiler()
    >>> profiler.assert_allclose(lambda a, b: a @ b)
    >>> profiler.do_bench()
    0.42
    """

    params: Sequence[KernelParam]
    result_idx: Sequence[int]
    supply_type: TensorSupplyType = TensorSupplyType.Auto
    adapter: Any = None

    def with_default_adapter(self, adapter: Any) -> Profiler:
        """Set what launches the kernel; returns the profiler."""
        self.adapter = adapter
        return self

    @property
    def func(self) -> Program:
        """The kernel as a function of its inputs."""
        assert self.adapter is not None, "with_default_adapter was not called"
        launch: Program = self.adapter.func
        return launch

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Launch the kernel."""
        return self.func(*args, **kwargs)

    @property
    def _plan(self) -> LaunchPlan | None:
        return self.adapter.bundle.plan if self.adapter is not None else None

    @property
    def device(self) -> torch.device:
        """Where the kernel's tensors live."""
        plan = self._plan
        kinds = {p.device for p in plan.params if p.kind == "tensor"} if plan is not None else set()
        return torch.device(kinds.pop() if kinds else "cpu")

    def make_inputs(self, symbols: Mapping[str, int | float] | None = None) -> list[Any]:
        """Generate the arguments of a call; ``symbols`` gives symbolic sizes and scalars.

        Raises
        ------
        ArgumentValueError
            Naming each symbol without a value.
        """
        return make_inputs(self.params, self.result_idx, self.supply_type, self.device, symbols)

    def _inputs(self, given: Sequence[Any] | None) -> list[Any]:
        return self.make_inputs() if given is None else list(given)

    # -- comparing -----------------------------------------------------------------------------
    def assert_allclose(
        self,
        reference_program: Program,
        input_tensors: Sequence[Any] | None = None,
        atol: float = 1e-2,
        rtol: float = 1e-2,
        max_mismatched_ratio: float = 0.01,
    ) -> None:
        """Compare the kernel's results with those of ``reference_program`` on the same inputs.

        The results are what is returned; a program that returns nothing has written into its
        arguments, which are then compared. Each program gets copies of the inputs.

        Parameters
        ----------
        reference_program : callable
            Takes the kernel's inputs in order.
        input_tensors : sequence, optional
            Inputs to use instead of generated ones.
        atol, rtol, max_mismatched_ratio : float
            As for :func:`~tilelang.utils.tensor.torch_assert_close`.

        Raises
        ------
        AssertionError
            If a result differs.
        ValueError
            If the programs return different numbers of results.
        """

        def compare(results: Sequence[Any], references: Sequence[Any]) -> None:
            for position, (result, reference) in enumerate(zip(results, references, strict=True)):
                torch_assert_close(
                    result,
                    torch.as_tensor(reference),
                    rtol=rtol,
                    atol=atol,
                    max_mismatched_ratio=max_mismatched_ratio,
                    check_dtype=False,
                    check_device=False,
                    base_name=f"result {position} of the kernel",
                    ref_name="the reference",
                )

        self._compare(reference_program, input_tensors, compare)

    def manual_assert_close(
        self,
        reference_program: Program,
        input_tensors: Sequence[Any] | None = None,
        manual_check_prog: Callable[[Sequence[Any], Sequence[Any]], Any] | None = None,
    ) -> None:
        """Hand the kernel's and the reference's results, as lists, to ``manual_check_prog``.

        Raises
        ------
        ArgumentValueError
            Without ``manual_check_prog``.
        """
        if manual_check_prog is None:
            raise ArgumentValueError("manual_assert_close needs manual_check_prog")
        self._compare(reference_program, input_tensors, manual_check_prog)

    def _compare(
        self,
        reference_program: Program,
        given: Sequence[Any] | None,
        check: Callable[[Sequence[Any], Sequence[Any]], Any],
    ) -> None:
        inputs = self._inputs(given)
        mine, theirs = _copied(inputs), _copied(inputs)
        references = _as_list(reference_program(*theirs))
        results = _as_list(self.func(*mine))
        self._synchronize()
        if not results:
            written = self._written(mine) if references else range(len(mine))
            results = [mine[i] for i in written]
            references = references or [theirs[i] for i in written]
        tensors = [i for i, value in enumerate(results) if isinstance(value, torch.Tensor)]
        if len(results) != len(references):
            raise ArgumentValueError(
                f"the kernel has {len(results)} results, the reference {len(references)}"
            )
        check([results[i] for i in tensors], [references[i] for i in tensors])

    def _written(self, inputs: Sequence[Any]) -> list[int]:
        """Positions of the inputs that the kernel writes."""
        plan = self._plan
        assert plan is not None, "a kernel has run"
        return [i for i, param in enumerate(plan.inputs()) if param.access in ("w", "rw")]

    def assert_consistent(
        self, repeat: int = 10, input_tensors: Sequence[Any] | None = None
    ) -> None:
        """Run the kernel ``repeat`` times on the same inputs and demand equal bits each time.

        Raises
        ------
        AssertionError
            Naming the run that differs, as a race or an uninitialised read makes it.
        """
        inputs = self._inputs(input_tensors)
        first: list[torch.Tensor] | None = None
        for run in range(repeat):
            arguments = _copied(inputs)
            results = _as_list(self.func(*arguments)) or arguments
            self._synchronize()
            bits = [_bits(value) for value in results if isinstance(value, torch.Tensor)]
            if first is None:
                first = bits
            for position, (now, before) in enumerate(zip(bits, first, strict=True)):
                if not torch.equal(now, before):
                    count = int((now != before).sum())
                    raise AssertionError(
                        f"result {position} of run {run} differs from run 0 in {count} bytes"
                    )

    # -- running -------------------------------------------------------------------------------
    def run_once(self, func: Program | None = None) -> Any:
        """Run the kernel, or ``func``, once on generated inputs and return what it returns."""
        return (func or self.func)(*self.make_inputs())

    def do_bench(
        self,
        func: Program | None = None,
        warmup: float = 25,
        rep: float = 100,
        n_warmup: int = 0,
        n_repeat: int = 0,
        input_tensors: Sequence[Any] | None = None,
        backend: Backend = "event",
        quantiles: Sequence[float] | None = None,
        return_mode: ReturnMode = "mean",
        dynamic_symbolic_constraints: Mapping[str, int | float] | None = None,
        device: torch.device | str | None = None,
        early_stop_baseline: float | None = None,
    ) -> float | list[float]:
        """Time the kernel, or ``func``, in milliseconds.

        Parameters
        ----------
        func : callable, optional
            Called with the kernel's inputs instead of the kernel.
        input_tensors : sequence, optional
            Inputs to use; they make ``dynamic_symbolic_constraints`` unnecessary.
        dynamic_symbolic_constraints : mapping, optional
            Values of symbolic sizes and scalar parameters by name.
        device : torch.device or str, optional
            By default the device of the kernel.

        The other parameters are those of :func:`tilelang.profiler.do_bench`.

        Raises
        ------
        ArgumentValueError
            A ``ValueError`` naming each symbol without a value.
        """
        if input_tensors is None:
            inputs = self.make_inputs(dynamic_symbolic_constraints)
        else:
            inputs = list(input_tensors)
        program = func or self.func
        return do_bench(
            lambda: program(*inputs),
            warmup=warmup,
            rep=rep,
            _n_warmup=n_warmup,
            _n_repeat=n_repeat,
            quantiles=quantiles,
            backend=backend,
            return_mode=return_mode,
            device=self.device if device is None else device,
            early_stop_baseline=early_stop_baseline,
        )

    def _synchronize(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


def _as_list(results: Any) -> list[Any]:
    if results is None:
        return []
    return list(results) if isinstance(results, (tuple, list)) else [results]


def _copied(inputs: Sequence[Any]) -> list[Any]:
    return [value.clone() if isinstance(value, torch.Tensor) else value for value in inputs]


def _bits(value: torch.Tensor) -> torch.Tensor:
    return value.contiguous().flatten().view(torch.uint8)
