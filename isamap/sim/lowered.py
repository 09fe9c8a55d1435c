"""Execution of lowered kernels: what emitted code would compute, with every access checked.

A fault found here is a fault of lowering (or of a description), never of the user's kernel.
"""

from collections.abc import Mapping
from math import prod
from typing import assert_never

import numpy as np

from isamap.diagnostics import ArgumentsError, fail
from isamap.hw.accelerator import Accelerator
from isamap.interp.arguments import bind_symbols, shape_of
from isamap.interp.arithmetic import Arithmetic, declared
from isamap.interp.rounding import Values
from isamap.ir.nodes import Kernel
from isamap.lower.apart import faults_ahead
from isamap.lower.nodes import (
    Call,
    Copy,
    Guard,
    Loop,
    LoweredKernel,
    Node,
    Prefetch,
    Scope,
    Setting,
    Token,
)
from isamap.sim.calls import (
    Action,
    CallSite,
    Fragment,
    Plans,
    States,
    Tracer,
    new_fragment,
    value_of,
)
from isamap.sim.copies import compile_copy
from isamap.sim.memory import ArrayObserver, Environment, LoweredFault, Memory

__all__ = ["LoweredFault", "run_lowered"]


def run_lowered(
    lowered: LoweredKernel,
    accelerator: Accelerator,
    arrays: Mapping[str, Values],
    symbols: Mapping[str, int] | None = None,
    observer: ArrayObserver | None = None,
    *,
    kernel: Kernel | None = None,
    arithmetic: Arithmetic | None = None,
    tracer: Tracer | None = None,
) -> dict[str, Values]:
    """Return the content of the out and inout arrays after a lowered kernel, constants prepared.

    They are flat, or have the shapes of ``kernel`` if it is given.  LoweredFault for an access
    outside an array, a read of a register element without value, an operand in a wrong place;
    ArgumentsError for arguments that do not fit.  Arrays that nothing has written yet hold NaN
    (93 in integers), private ones where another iteration of a parallel loop wrote, and all but
    what is prepared after the constants are prepared.  ``tracer`` sees the call alone, not what
    comes ahead of it.
    """
    environment = _environment(lowered, symbols or {}, arrays, kernel)
    memory = Memory(lowered, arithmetic or declared(), observer)
    memory.load(arrays, environment)
    # What runs ahead is no part of the call that is traced.
    first = _Machine(lowered, accelerator, memory, None).body(lowered.prepare, {})
    call = _Machine(lowered, accelerator, memory, tracer).body(lowered.body, {})
    if first and (faults := faults_ahead(lowered, accelerator.by_name)):
        raise LoweredFault(faults[0])
    with np.errstate(all="ignore"):
        for action in first:
            action(environment)
        for array in lowered.arrays:
            if array.role == "local" and first:  # a call has another workspace
                memory.poison(array)
        for action in call:
            action(environment)
    shapes = {} if kernel is None else {b.name: shape_of(b, environment) for b in kernel.buffers}
    return {
        a.name: memory.arithmetic.decode(memory.data[a.name], a.dtype).reshape(
            shapes.get(a.name, (-1,))
        )
        for a in lowered.arrays
        if a.role in ("out", "inout")
    }


def _environment(
    lowered: LoweredKernel,
    symbols: Mapping[str, int],
    arrays: Mapping[str, Values],
    kernel: Kernel | None,
) -> Environment:
    values = dict(symbols) if kernel is None else bind_symbols(kernel, symbols, arrays)
    missing = [name for name in lowered.symbols if name not in values]
    if missing:
        raise ArgumentsError(fail("E210", f"no value for {', '.join(missing)}"))
    for condition in lowered.requires:
        if condition.evaluate(values) < 0:
            raise ArgumentsError(fail("E215", f"the code requires {condition} >= 0"))
    return values


class _Machine:
    """Compiles the nodes of a lowered kernel to closures over the arrays of one run."""

    def __init__(
        self,
        lowered: LoweredKernel,
        accelerator: Accelerator,
        memory: Memory,
        tracer: Tracer | None,
    ) -> None:
        self.memory, self.tracer = memory, tracer
        self.private = [a for a in lowered.arrays if a.private]
        self.entries = accelerator.by_name
        self.kinds: dict[str, str] = {s.name: s.kind for s in accelerator.storages}
        self.accelerator = accelerator
        self.holders: dict[tuple[str, int], list[Fragment]] = {}
        self.plans: Plans = {}
        self.depth = 0
        self.states: States = {}

    def body(self, nodes: tuple[Node, ...], scope: Mapping[str, Fragment]) -> list[Action]:
        """Return an action for each node."""
        return [self._node(node, scope) for node in nodes]

    def _node(self, node: Node, scope: Mapping[str, Fragment]) -> Action:
        match node:
            case Call():
                return self._call(node, scope)
            case Loop():
                return self._loop(node, scope)
            case Guard():
                return self._guard(node, scope)
            case Scope():
                return self._scope(node, scope)
            case Copy():
                return self._copy(node)
            case Prefetch():
                return self._prefetch(node)
            case Token():
                return self._token(node)
            case Setting():
                return self._setting(node)
            case _:
                assert_never(node)

    def _copy(self, node: Copy) -> Action:
        copy, tracer = compile_copy(node, self.memory), self.tracer
        if tracer is None:
            return copy

        def traced(environment: Environment) -> None:
            copy(environment)
            tracer.copied(node)

        return traced

    def _token(self, node: Token) -> Action:
        tracer = self.tracer

        def token(environment: Environment) -> None:
            if tracer is not None:
                tracer.token(node)

        return token

    def _setting(self, node: Setting) -> Action:
        value, tracer = value_of(node.value, self.memory), self.tracer

        def setting(environment: Environment) -> None:
            self.states.setdefault(node.state, {})[node.slot] = value(environment)
            if tracer is not None:
                tracer.setting(node)

        return setting

    def _prefetch(self, node: Prefetch) -> Action:
        """Return what does nothing: a line that is asked for is neither read nor written."""
        self.memory.array(node.buffer)
        if node.offset.reads:
            raise LoweredFault(f"what is prefetched of {node.buffer} depends on what arrays hold")

        def prefetch(environment: Environment) -> None:
            if unknown := sorted(node.offset.names - environment.keys()):
                raise LoweredFault(
                    f"{unknown[0]}, by which {node.buffer} is prefetched, is nothing"
                )

        return prefetch

    def _call(self, node: Call, scope: Mapping[str, Fragment]) -> Action:
        entry = self.entries.get(node.instruction)
        if entry is None:
            raise LoweredFault(f"there is no instruction {node.instruction}")
        site = CallSite(
            node, entry, self.kinds, scope, self.memory, self.plans, self.tracer, self.states
        )
        return site.run

    def _loop(self, node: Loop, scope: Mapping[str, Fragment]) -> Action:
        count, counter = self.memory.number(node.count), node.counter
        private = self.private if node.parallel and not self.depth else []
        self.depth += node.parallel
        body = self.body(node.body, scope)
        self.depth -= node.parallel

        def loop(environment: Environment) -> None:
            before = [self.memory.data[array.name].copy() for array in private]
            for value in range(int(count(environment))):
                environment[counter] = value
                for action in body:
                    action(environment)
                # What an iteration changes is another thread's, for all that the next one may know.
                for array, content in zip(private, before, strict=True):
                    self.memory.forget(array, content)

        return loop

    def _guard(self, node: Guard, scope: Mapping[str, Fragment]) -> Action:
        conditions = [self.memory.number(condition) for condition in node.conditions]
        body, otherwise = self.body(node.body, scope), self.body(node.otherwise, scope)

        def guard(environment: Environment) -> None:
            holds = all(condition(environment) >= 0 for condition in conditions)
            for action in body if holds else otherwise:
                action(environment)

        return guard

    def _number(self, fragment: Fragment) -> None:
        """Have a fragment share what it is in with all others of its numbers."""
        register = fragment.register
        if register.number is None:
            return
        storage = self.accelerator.storage(register.storage)
        file, _ = self.accelerator.register_file(storage)
        size = prod(register.shape) * register.dtype.bytes
        count = self.accelerator.rows_for(storage, size) * register.places
        is_numbered = self.accelerator.rows(storage) is not None
        if not is_numbered or not self.accelerator.may_begin(storage, register.number, count):
            raise LoweredFault(f"register {register.name}: {file.name} has no {register.number}")
        row = range(register.number, register.number + count)
        held = tuple(self.holders.setdefault((file.name, n), []) for n in row)
        for group in held:
            group.append(fragment)
        fragment.rivals = held

    def _scope(self, node: Scope, scope: Mapping[str, Fragment]) -> Action:
        for register in node.registers:
            if register.storage not in self.kinds:
                raise LoweredFault(f"register {register.name}: no storage {register.storage}")
        fragments = [new_fragment(register, self.memory) for register in node.registers]
        for fragment in fragments:
            self._number(fragment)
        body = self.body(node.body, {**scope, **{f.register.name: f for f in fragments}})

        tracer = self.tracer

        def enter(environment: Environment) -> None:
            for fragment in fragments:
                fragment.forget()
            if tracer is not None:
                tracer.enter(node.registers)
            for action in body:
                action(environment)

        return enter
