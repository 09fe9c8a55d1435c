"""The nodes of a lowered kernel as the lines of a C function."""

from typing import assert_never

from isamap.emit import names
from isamap.emit.copies import copy_function
from isamap.emit.expressions import Env, conjunction, text
from isamap.emit.liveness import buffers_used, registers_used
from isamap.emit.templates import Machine, call_lines
from isamap.emit.workspace import Block
from isamap.lower.nodes import (
    Call,
    Copy,
    Guard,
    Loop,
    LoweredKernel,
    Node,
    Register,
    Scope,
)

INDENT = "    "
_WIDTH = 100


class Body:
    """The lines of one function; copies become functions of their own, added to ``copies``."""

    def __init__(
        self,
        lowered: LoweredKernel,
        machine: Machine,
        entry: str,
        workspace: Block,
        env: Env,
        copies: list[str],
    ) -> None:
        self.machine = machine
        self.entry = entry
        self.arrays = {array.name: array for array in lowered.arrays}
        self.workspace = workspace
        self.env = env
        self.copies = copies
        self.out: list[str] = []
        self.depth = 1
        self.is_parallel = False

    def put(self, *lines: str) -> None:
        """Add lines at the depth that is reached."""
        for line in lines:
            self.out.append(INDENT * self.depth + line if line else "")

    def nodes(self, nodes: tuple[Node, ...]) -> None:
        """Add what executes some nodes."""
        self._nodes(nodes, self.env)

    def _nodes(self, nodes: tuple[Node, ...], env: Env) -> None:
        for node in nodes:
            self._node(node, env, alone=len(nodes) == 1)

    def _block(self, nodes: tuple[Node, ...], env: Env) -> None:
        self.depth += 1
        self._nodes(nodes, env)
        self.depth -= 1

    def _node(self, node: Node, env: Env, alone: bool) -> None:
        match node:
            case Call():
                self.put(*call_lines(node, self.machine, env))
            case Loop(parallel=True) if not self.is_parallel:
                self._parallel(node, env)
            case Loop():
                self.put(f"{_for(node, env)} {{")
                self._block(node.body, env.with_counter(node.counter, node.count))
                self.put("}")
            case Guard():
                self._guard(node, env)
            case Scope():
                self._scope(node, env, alone)
            case Copy():
                name = f"{self.entry}_copy{len(self.copies)}"
                function = copy_function(node, name, self.arrays, env)
                self.copies.append(function.definition)
                self.put(function.call)
            case _:
                assert_never(node)

    def _parallel(self, loop: Loop, env: Env) -> None:
        self.out.append("#ifdef _OPENMP")
        self.out.append("#pragma omp parallel for num_threads(threads) if (threads > 1)")
        self.out.append("#endif")
        self.put(f"{_for(loop, env)} {{")
        self.depth += 1
        if private := self.workspace.private_lines("(size_t)thread", buffers_used(loop.body)):
            self.out.append("#ifdef _OPENMP")
            self.put("const int thread = omp_get_thread_num();")
            self.out.append("#else")
            self.put("const int thread = 0;")
            self.out.append("#endif")
            self.put(*private)
        self.is_parallel = True
        self._nodes(loop.body, env.with_counter(loop.counter, loop.count))
        self.is_parallel = False
        self.depth -= 1
        self.put("}")

    def _guard(self, guard: Guard, env: Env) -> None:
        self.put(f"if ({conjunction(guard.conditions, env)}) {{")
        self._block(guard.body, env)
        if guard.otherwise:
            self.put("} else {")
            self._block(guard.otherwise, env)
        self.put("}")

    def _scope(self, scope: Scope, env: Env, alone: bool) -> None:
        if not alone:
            self.put("{")
            self.depth += 1
        uses = registers_used(scope.body, self.machine)
        self._declare(tuple(r for r in scope.registers if r.name in uses))
        for register in scope.registers:
            if uses.get(register.name) == "written":
                self.put(f"(void){names.register(register.name)};")
        self._nodes(scope.body, env)
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


def _for(loop: Loop, env: Env) -> str:
    variable = names.counter(loop.counter)
    count = text(loop.count, env)
    return f"for (int64_t {variable} = 0; {variable} < {count}; ++{variable})"
