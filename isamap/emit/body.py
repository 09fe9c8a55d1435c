"""The nodes of a lowered kernel as the lines of a C function."""

from typing import assert_never

from isamap.emit import names
from isamap.emit.copies import copy_function
from isamap.emit.expressions import Env, conjunction, loop_head, text
from isamap.emit.liveness import calls, registers_used
from isamap.emit.requests import requests, written_out
from isamap.emit.templates import Machine, call_lines, prefetch_line, setting_lines
from isamap.emit.together import Together
from isamap.emit.tokens import Turns, Waiting
from isamap.ir.ahead import Uses
from isamap.ir.index import var
from isamap.lower.nodes import (
    Call,
    Copy,
    Guard,
    Loop,
    LoweredKernel,
    Node,
    Prefetch,
    Register,
    Scope,
    Setting,
    Token,
)
from isamap.lower.rounds import renamed

INDENT = "    "
_WIDTH = 100


_NOTHING = Uses(frozenset(), frozenset())


class Body:
    """The lines of one function; copies become functions of their own, added to ``copies``.

    With ``together`` the function is executed by several threads, and ``thread`` and ``threads``
    are among its parameters.
    """

    def __init__(
        self,
        lowered: LoweredKernel,
        nodes: tuple[Node, ...],
        machine: Machine,
        entry: str,
        env: Env,
        copies: list[str],
        together: Together | None = None,
    ) -> None:
        self.machine = machine
        self.entry = entry
        self.arrays = {array.name: array for array in lowered.arrays}
        self.env = env
        self.copies = copies
        self.together = together
        self.out: list[str] = []
        self.depth = 1
        self.own = nodes
        self.waiting = Waiting(nodes, machine)
        self.turns = Turns(nodes, machine)
        self.busy = False
        # What a thread does before others may touch what it did.
        self.settle = [*self.waiting.idle_lines(), *fence_lines(lowered.code, machine)]

    def put(self, *lines: str) -> None:
        """Add lines at the depth that is reached."""
        for line in lines:
            self.out.append(INDENT * self.depth + line if line else "")

    def write(self) -> None:
        """Add what executes the function's nodes."""
        self.put(*self.turns.declarations(), *self.waiting.declarations())
        if self.together is not None and not self.together.may_come_late(self.own):
            self.put("isamap_meet_all(threads);")
        self._inside(self.own, self.env, self.together)
        self.put(*self.settle)

    def _nodes(self, nodes: tuple[Node, ...], env: Env) -> None:
        busy = self.busy
        for node in nodes:
            busy = self.busy = self._idle_before(node, busy)
            self._node(node, env, alone=len(nodes) == 1)

    def _idle_before(self, node: Node, busy: bool) -> bool:
        """Wait for all units before what the host does; return whether they may have work then.

        ``busy`` is whether they may have some before.  Where a node begins with units that have
        none, they have none in it before it gives them some.
        """
        if busy and self.waiting.is_host(node):
            self.put(*self.waiting.idle_lines())
            return False
        return busy or self.waiting.gives((node,))

    def _block(self, nodes: tuple[Node, ...], env: Env) -> None:
        self.depth += 1
        self._nodes(nodes, env)
        self.depth -= 1

    def _node(self, node: Node, env: Env, alone: bool) -> None:
        match node:
            case Call():
                self.put(*call_lines(node, self.machine, env))
            case Loop():
                self._loop(node, env)
            case Guard():
                self._guard(node, env)
            case Scope():
                self._scope(node, env, alone)
            case Copy():
                name = f"{self.entry}_copy{len(self.copies)}"
                function = copy_function(node, name, self.arrays, env)
                self.copies.append(function.definition)
                self.put(function.call)
            case Prefetch():
                self.put(prefetch_line(node, self.machine, env))
            case Token():
                self.put(*self.waiting.lines(node))
            case Setting():
                self.put(*setting_lines(node, self.machine, env))
            case _:
                assert_never(node)

    def _loop(self, loop: Loop, env: Env) -> None:
        inner = env.with_counter(loop.counter, loop.count)
        times = written_out(loop, self.machine)
        if times > 1:
            self._written_out(loop, times, env, inner)
            return
        self.put(*requests(loop, self.machine), f"{_all(loop, inner)} {{")
        self._block(loop.body, inner)
        self.put("}")

    def _written_out(self, loop: Loop, times: int, env: Env, inner: Env) -> None:
        """Add a loop with so many iterations in its body, and one for those that remain."""
        count, counter = text(loop.count, env), inner.integers[loop.counter]
        kind = inner.kind(loop.counter)
        head = f"{kind} {counter} = 0; {counter} + {times - 1} < {count}; {counter} += {times}"
        self.put(f"for ({head}) {{")
        self.depth += 1
        for number in range(times):
            for node in renamed(loop.body, {loop.counter: var(loop.counter) + number}):
                self._node(node, inner, alone=False)
        self.depth -= 1
        self.put("}")
        if loop.count.constant is None or loop.count.constant % times:
            first = text(loop.count // times * times, env)
            self.put(f"{loop_head(loop.counter, first, count, inner)} {{")
            self._block(loop.body, inner)
            self.put("}")

    def _shared_nodes(self, nodes: tuple[Node, ...], env: Env, together: Together) -> None:
        """Add what all threads execute, each its part."""
        since = _NOTHING  # they met
        busy = self.busy
        for node in nodes:
            touched = together.touched(node)
            if together.must_meet(since, touched):
                self.put(*self.settle, "isamap_meet(threads);")
                since, busy = _NOTHING, False
            busy = self.busy = self._idle_before(node, busy)
            since = Uses(since.reads | touched.reads, since.writes | touched.writes)
            if together.is_shared(node):
                self._shared(node, env, together)
            elif together.is_alone(node):
                self.put("if (thread == 0) {")
                self._block((node,), env)
                self.put("}")
            else:
                self._node(node, env, alone=len(nodes) == 1)

    def _shared(self, node: Node, env: Env, together: Together) -> None:
        match node:
            case Loop(parallel=True):
                self.put(*_share(node, env))
                self._block(node.body, env.with_counter(node.counter, node.count))
                self.put("}")
            case Loop():
                inner = env.with_counter(node.counter, node.count)
                self.put(f"{_all(node, inner)} {{")
                self.depth += 1
                self._shared_nodes(node.body, inner, together)
                touched = together.touched(*node.body)
                if together.must_meet(touched, touched):
                    self.put(*self.settle, "isamap_meet(threads);")
                self.depth -= 1
                self.put("}")
            case Guard():
                self._guard(node, env, together)
            case Scope():
                self._scope(node, env, alone=False, together=together)
            case Call() | Copy() | Prefetch() | Token() | Setting():
                raise AssertionError("threads share loops")
            case _:
                assert_never(node)

    def _inside(self, nodes: tuple[Node, ...], env: Env, together: Together | None) -> None:
        if together is None:
            self._nodes(nodes, env)
        else:
            self._shared_nodes(nodes, env, together)

    def _guard(self, guard: Guard, env: Env, together: Together | None = None) -> None:
        self.put(f"if ({conjunction(guard.conditions, env)}) {{")
        self.depth += 1
        self._inside(guard.body, env, together)
        self.depth -= 1
        if guard.otherwise:
            self.put("} else {")
            self.depth += 1
            self._inside(guard.otherwise, env, together)
            self.depth -= 1
        self.put("}")

    def _scope(self, scope: Scope, env: Env, alone: bool, together: Together | None = None) -> None:
        if not alone:
            self.put("{")
            self.depth += 1
        uses = registers_used(scope.body, self.machine)
        variables = [r for r in scope.registers if r.number is None]
        self._declare(tuple(r for r in variables if r.name in uses))
        for register in variables:
            if uses.get(register.name) == "written":
                self.put(f"(void){names.register(register.name)};")
        self.put(*self.turns.lines([r for r in scope.registers if r.name in uses]))
        self._inside(scope.body, env, together)
        if not alone:
            self.depth -= 1
            self.put("}")

    def _declare(self, registers: tuple[Register, ...]) -> None:
        """Declare a C variable for each register, as many of one type as fit on a line."""
        line, last = "", ""
        for register in registers:
            kind, name = self.machine.register_type(register), names.register(register.name)
            longer = f"{line}, {name}"
            is_word = kind.replace("_", "").isalnum()
            if kind == last and is_word and len(longer) + len(INDENT) * self.depth < _WIDTH:
                line = longer
                continue
            if line:
                self.put(f"{line};")
            line, last = f"{kind} {name}", kind
        if line:
            self.put(f"{line};")


def fence_lines(nodes: tuple[Node, ...], machine: Machine) -> tuple[str, ...]:
    """Return what a thread does before others may read what it wrote past the caches."""
    past = {entry.name for entry in machine.accelerator.past_stores}
    if not any(call.bypass and call.instruction in past for call in calls(nodes)):
        return ()
    fence = machine.accelerator.fence
    assert fence is not None, "a description that bypasses caches has a fence"
    return (fence.strip(),)


def _all(loop: Loop, env: Env) -> str:
    """Return the head of the loop over all iterations; ``env`` is that of its body."""
    return loop_head(loop.counter, "0", text(loop.count, env), env)


def _share(loop: Loop, env: Env) -> tuple[str, str, str]:
    """Return the heads of the loops over the iterations that a thread takes."""
    turn = f"turn_{names.mangle(loop.counter)}"
    count = text(loop.count, env)
    inner = env.with_counter(loop.counter, loop.count)
    return (
        f"for (struct isamap_turn {turn} = isamap_at({count}, loops, thread, threads);",
        f"     isamap_take(&{turn});)",
        f"{loop_head(loop.counter, f'{turn}.from', f'{turn}.past', inner)} {{",
    )
