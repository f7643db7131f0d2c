"""Writes the Python text of an op: Note [Generated code] in rule.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gradfn._guard import checks

if TYPE_CHECKING:
    from gradfn.ops.rule import Op


def parameters(signature: str) -> list[str]:
    """The names in a signature; a bare star stays."""
    return [p.partition("=")[0] for p in split(signature)]


def split(signature: str) -> list[str]:
    """The parts between the commas of a signature; those inside brackets stay."""
    if "(" not in signature and "[" not in signature and "{" not in signature:
        return [p.strip() for p in signature.split(",") if p.strip()]
    depth, start, parts = 0, 0, []
    for i, c in enumerate(signature):
        depth += (c in "([{") - (c in ")]}")
        if c == "," and not depth:
            parts.append(signature[start:i])
            start = i + 1
    parts.append(signature[start:])
    return [p.strip() for p in parts if p.strip()]


def names_of(rule: Callable[..., Any]) -> tuple[str, ...]:
    code = rule.__code__
    return code.co_varnames[: code.co_argcount]


def _identity(g: Any) -> Any:
    return g


def is_identity(rule: Callable[..., Any]) -> bool:
    """Is it `lambda g: g`, which need not be called?"""
    code = rule.__code__
    return code.co_argcount == 1 and code.co_code == _identity.__code__.co_code


def takes_names(kernel: Any) -> bool:
    """Must keyword-only arguments be passed by name? (By place is faster.)"""
    return bool(getattr(getattr(kernel, "__code__", None), "co_kwonlyargcount", 0))


class Source:
    """Writes the Python text for a row."""

    def __init__(self, row: Op, name: str = "", reflected: bool = False) -> None:
        self.row = row
        self.name = name or row.name
        self.reflected = reflected

    # -- the function ----------------------------------------------------------------

    def function(self) -> str:
        """The function that users call."""
        if self.name == self.row.name + "_":
            return self.inplace()
        return self.out_of_place()

    def head(self) -> list[str]:
        """The signature, the door for unusual arguments, and the arrays."""
        row = self.row
        if self.name.startswith("__"):
            signature = row.signature
            if self.reflected:
                star = ("*", *row.plain_defaults) if row.plain else ()
                signature = ", ".join((*reversed(row.takes), *star))
            lines = [f"def {self.name}({signature}):"]
        else:
            lines = self.named()
        if row.many:
            first = row.many
            lines.append(f"    {first}, diverted = admit_many(OP, {self.all_args()})")
            lines += ["    if diverted is not None: return diverted[0]"]
            lines.append(f"    a0 = [t._array for t in {first}]")
            return lines
        if row.takes:
            lines += self.door()
        for i, p in enumerate(row.takes):
            empty = f" if {p} is not None else None" if p in row.optional else ""
            lines.append(f"    a{i} = {p}._array{empty}")
        if row.numbers:
            lines.append(
                "    if a0.dtype is not a1.dtype: a0, a1 = promote_arrays(a0, a1)"
            )
        if row.floats:
            lines.append("    if a0.dtype.kind in 'biu':")
            for i in range(2 if row.numbers else 1):
                lines.append(f"        a{i} = a{i}.astype(default_dtype())")
        return lines

    def named(self) -> list[str]:
        """The head of a function that also knows NumPy's names: Note [Other names]."""
        row = self.row
        parts = [
            p if "=" in p or p == "*" else f"{p}=MISSING" for p in split(row.signature)
        ]
        lines = [
            f"def {self.name}({', '.join(parts)}, **more):",
            f"    if more: return renamed(me, OP, more, {self.all_args()})",
        ]
        for p in row.plain:
            if p in split(row.signature):
                lines.append(f"    if {p} is MISSING: raise missing(OP, {p!r})")
        return lines + ([] if row.name.startswith("_") else self.checks())

    def checks(self) -> list[str]:
        """Looks at flags and integers, of which wrong ones would be taken in silence."""
        row, lines = self.row, []
        for place, p in enumerate(row.params):
            if p in row.kinds:
                lines += checks(row.title, place, p, row.kinds[p], ("bool", "int"))
        return lines

    def door(self) -> list[str]:
        row = self.row
        test = " or ".join(
            f"({p} is not None and type({p}) is not Tensor)"
            if p in row.optional
            else f"type({p}) is not Tensor"
            for p in row.takes
        )
        if row.numbers not in ("", "no"):
            a, b = row.takes
            rest = f", ({self.plain_args()})" if row.plain else ""
            door = "admit_second" if row.numbers == "second" else "admit_pair"
            if self.name.startswith("__"):
                door = "admit_operator"
            return [
                f"    if {test}:",
                f"        {a}, {b}, diverted = {door}(OP, {a}, {b}{rest})",
                "        if diverted is not None: return diverted[0]",
            ]
        targets = ", ".join(row.takes)
        return [
            f"    if {test}:",
            f"        ({targets},), diverted = admit(OP, {self.all_args()})",
            "        if diverted is not None: return diverted[0]",
        ]

    def plain_args(self) -> str:
        return "".join(f"{p}, " for p in self.row.plain)

    def all_args(self) -> str:
        return "(" + "".join(f"{p}, " for p in self.row.params) + ")"

    def kernel_args(self) -> str:
        row, args, star = self.row, [], False
        for p in parameters(row.signature):
            if p == "*":
                star = True
                continue
            value = p
            if p in row.takes:
                value = f"a{row.takes.index(p)}"
            elif p == row.many:
                value = "a0"
            args.append(f"{p}={value}" if star and takes_names(row.kernel) else value)
        return ", ".join(args)

    def call(self) -> list[str]:
        args = self.kernel_args()
        kernel = "kernel"
        if self.row.direct and self.name.startswith("__"):
            kernel = "direct"
            args = ", ".join(f"a{i}" for i in range(len(self.row.takes)))
        return [
            f"    try: r = run({kernel}, {args})",
            "    except Exception as error:",
            f"        r = failed(OP, error, {args})",
        ]

    def out_of_place(self) -> str:
        lines = [*self.head(), *self.call()]
        if self.row.outputs:
            lines += self.several()
        else:
            lines += self.single()
        return "\n".join(lines) + "\n"

    def single(self) -> list[str]:
        row = self.row
        lines = [
            "    out = new(Tensor)",
            "    if type(r) is not ndarray: r = asarray(r)",
            "    out._array = r",
            "    out._grad_fn = out._cell = out._view = out._extra = None",
        ]
        if row.view:
            args = "".join(f"{p}, " for p in row.params[1:])
            lines.append(f"    mark_view(out, {row.params[0]}, OP, ({args}))")
        return [*lines, *self.recording("out"), "    return out"]

    def recording(self, out: str) -> list[str]:
        row = self.row
        tensors = row.many or "".join(f"{p}, " for p in row.takes)
        rare = f"    elif m: rare(OP, m, {out}, ({tensors}), ({self.record_args()}))"
        if not row.rules:
            return ["    m = mode()", "    if m > 1" + rare[10:].replace("m:", ":", 1)]
        if row.many:
            edges = [f"        e = [edge(t) for t in {row.many}]"]
            test, given = "any(x is not None for x in e)", "e"
        else:
            edges = [self.edge(i, p) for i, p in enumerate(row.rules)]
            test = " or ".join(f"e{i} is not None" for i in range(len(row.rules)))
            given = ", ".join(f"e{i}" for i in range(len(row.rules)))
        lines = ["    m = mode()", "    if m == 1:", *edges]
        if row.outputs or row.many:
            record = f"record({out}, {given}, {self.record_args()})"
            if not row.outputs:
                record = f"{out}._grad_fn = {record}"
            lines.append(f"        if {test}: {record}")
        else:
            lines.append(f"        if {test}:")
            lines += ["        " + line for line in self.making(inline=True)]
            lines.append("            out._grad_fn = node")
        return [*lines, *self.inside_forward(out), rare]

    def inside_forward(self, out: str) -> list[str]:
        """The hot case among the rare ones: an op in Function.forward."""
        row = self.row
        if row.many or row.outputs:
            return []
        test = " or ".join(
            f"{p} is not None and is_intermediate({p})"
            if p in row.optional
            else f"{p}._grad_fn is not None "
            f"or {p}._extra is not None and {p}._extra.intermediate"
            for p in row.takes
        )
        return ["    elif m == 16:", f"        if {test}: {out}._extra = INTERMEDIATE"]

    def edge(self, i: int, p: str) -> str:
        empty = f"None if {p} is None else " if p in self.row.optional else ""
        return f"        e{i} = {empty}{p}._grad_fn if {p}._view is None else edge({p})"

    def record_args(self) -> str:
        return "".join(f"{p}, " for p in self.row.params)

    def several(self) -> list[str]:
        row = self.row
        lines = ["    outs = [wrap(x) for x in r]"]
        if row.view:
            args = "".join(f"{p}, " for p in row.params[1:])
            lines.append("    for i, out in enumerate(outs):")
            lines.append(
                f"        mark_view(out, {row.params[0]}, OP.parts, (i, {args}), MULTI)"
            )
        lines += self.recording("outs")
        build = "result_type(*outs)" if len(row.outputs) > 1 else "tuple(outs)"
        return [*lines, f"    return {build}"]

    def inplace(self) -> str:
        row = self.row
        lines = [line.replace("(OP, ", "(WRITER, ") for line in self.head()]
        given = ", ".join(f"{p}" for p in row.takes)
        lines += [
            f"    return written(OP, ({given},), ({self.record_args()}), "
            f"({''.join(f'a{i}, ' for i in range(len(row.takes)))}))"
        ]
        return "\n".join(lines) + "\n"

    # -- the node ----------------------------------------------------------------------

    def needed(self, p: str) -> list[str]:
        """What the formula for argument `p` mentions."""
        both = (*names_of(self.row.rules[p]), *names_of(self.row.raw_rules[p]))
        return [n for n in dict.fromkeys(both) if n not in ("g", "gs", "xp")]

    def slots(self) -> list[str]:
        """The slots of the node class."""
        names: dict[str, None] = {}
        for p in self.row.rules:
            for n in self.needed(p):
                names[f"_{n}"] = None
                if n == "result" or n in self.row.outputs:
                    names["cell"] = None
        if self.row.many:
            names["count"] = None
        if self.row.differentiable > 1 or self.row.outputs == ["many"]:
            names["_output_nodes"] = None
        return list(names)

    def record(self) -> str:
        """`record(out, edges…, arguments…)`: the node for a result."""
        row = self.row
        edges = "e" if row.many else ", ".join(f"e{i}" for i in range(len(row.rules)))
        lines = [f"def record(out, {edges}, {self.record_args()}):", *self.making()]
        if row.outputs:
            lines += self.outputs()
        lines.append("    return node")
        return "\n".join(lines) + "\n"

    def making(self, inline: bool = False) -> list[str]:
        """The lines that make `node`; inline in the function, `r` is at hand."""
        row = self.row
        if row.overload:
            lines = [f"    node = new(Node1 if {row.overload} else Node0)"]
        else:
            lines = ["    node = new(Node0)"]
        lines += [
            "    node._seq = next(ticks)",
            "    node._extra = node._versions = None",
        ]
        if "_output_nodes" in row.saved:
            lines.append("    node._out_shape = node._out_dtype = None")
        else:
            if not inline:
                lines.append(f"    r = out{'[0]' * bool(row.outputs)}._array")
            lines.append("    node._out_shape = r.shape; node._out_dtype = r.dtype")
        return [*lines, *self.edges(), *self.saving()]

    def edges(self) -> list[str]:
        row = self.row
        if row.many:
            return [
                f"    e = [t if x is LEAF else x for x, t in zip(e, {row.many})]",
                "    needs = 0",
                "    for i, x in enumerate(e):",
                "        if x is not None: needs |= 1 << i",
                "    some_e = [x for x in e if x is not None]",
                "    node._next = some_e[0] if len(some_e) == 1 else tuple(some_e)",
                "    node._needs = needs; node.count = len(e)",
            ]
        names = list(row.rules)
        lines = [f"    if e{i} is LEAF: e{i} = {p}" for i, p in enumerate(names)]
        if len(names) == 1:
            return [*lines, "    node._next = e0; node._needs = needs = 1"]
        if len(names) == 2:
            return [
                *lines,
                "    if e1 is None: node._next = e0; node._needs = needs = 1",
                "    elif e0 is None: node._next = e1; node._needs = needs = 2",
                "    else: node._next = (e0, e1); node._needs = needs = 3",
            ]
        packed = ", ".join(f"e{i}" for i in range(len(names)))
        return [
            *lines,
            f"    needs, node._next = some(({packed}))",
            "    node._needs = needs",
        ]

    def saving(self) -> list[str]:
        row = self.row
        users: dict[str, int] = {}
        for bit, p in enumerate(row.rules):
            for n in self.needed(p):
                users[n] = users.get(n, 0) | 1 << bit
        lines = []
        full = (1 << len(row.rules)) - 1
        for n, mask in users.items():
            pre = "    "
            if n in row.takes and mask != full:
                lines.append(f"    if needs & {mask}:")
                pre += "    "
            lines += [pre + line for line in self.save(n)]
        return lines

    def save(self, n: str) -> list[str]:
        row = self.row
        if n in row.takes:
            test = f"{n} is not None and " if n in row.optional else ""
            return [
                f"node._{n} = {n}",
                f"if {test}{n}._cell is not None: note_version(node, '{n}', {n}._cell)",
            ]
        if n == row.many:
            return [f"node._{n} = list({n})", f"note_versions(node, '{n}', {n})"]
        if n == "result":
            return self.save_output(n, "out")
        if n in row.outputs:
            return self.save_output(n, f"out[{row.outputs.index(n)}]")
        if n.endswith("_shape") and n[:-6] == row.many:
            return [f"node._{n} = [t._array.shape for t in {row.many}]"]
        t, _, what = n.rpartition("_")
        if what in ("shape", "dtype") and t in row.takes:
            empty = f"None if {t} is None else " if t in row.optional else ""
            return [f"node._{n} = {empty}{t}._array.{what}"]
        if n in row.params:
            return [f"node._{n} = {n}"]
        raise TypeError(f"{row.name}: a formula asks for {n!r}, which nobody knows")

    def save_output(self, n: str, out: str) -> list[str]:
        # Outputs that are saved together share a cell: the node has one, and all of them
        # have to be as they were.
        first = next(x for x in self.slots() if x[1:] in ("result", *self.row.outputs))
        if first == f"_{n}":
            cell = [
                f"if {out}._cell is None: {out}._cell = Cell()",
                f"node.cell = {out}._cell",
            ]
        else:
            cell = [f"{out}._cell = node.cell"]
        return [
            f"node._{n} = {out}._array",
            *cell,
            f"note_version(node, '{n}', node.cell)",
        ]

    def outputs(self) -> list[str]:
        row = self.row
        if "_output_nodes" not in row.saved:
            return ["    out[0]._grad_fn = node"]
        n = "len(out)" if row.outputs == ["many"] else str(row.differentiable)
        return [
            f"    n = {n}",
            "    node._output_nodes = [None] * n",
            "    for i in reversed(range(n)):",  # so that hooks run in the outputs' order
            "        o = out[i]._grad_fn = output_of(node, i, n, out[i]._array)",
            "        node._output_nodes[i] = ref(o)",
        ]

    def backward(self) -> str:
        """`raw`, `recorded` and `release` of the node class."""
        lines = [*self.walk("raw", raw=True), *self.walk("recorded", raw=False)]
        held = [
            s
            for s in self.slots()
            if s[1:] in self.row.takes
            or s[1:] in ("result", self.row.many)
            or s[1:] in self.row.outputs
        ]
        if held:
            lines.append("def _release(node):")
            names = [f"node.{s}" for s in held]
            if "cell" in self.slots():
                names.append("node.cell")
            lines.append(f"    {' = '.join(names)} = RELEASED")
        return f"{chr(10).join(lines)}\n"

    def walk(self, name: str, raw: bool) -> list[str]:
        row = self.row
        lines = [f"def {name}(node, g, needs):"]
        if "_output_nodes" in self.slots():
            lines.append("    gs = g.grads")
        if row.discards:
            lines.append("    trouble.discarded = True")
        if row.uniform and raw:
            lines += [
                "    if g.base is not None and (one := one_value(g)) is not None:",
                "        return everywhere(node._raw(one, needs), g.shape)",
            ]
        if row.many:
            lines += ["    " + x for x in self.formula(row.many, raw, "r")]
            return [
                *lines,
                "    r = [x for i, x in enumerate(r) if needs >> i & 1]",
                "    return r if len(r) > 1 else r[0]",
            ]
        names = list(row.rules)
        if len(names) == 1:
            return lines + ["    " + x for x in self.formula(names[0], raw, "")]
        for i, p in enumerate(names):
            lines.append(f"    if needs & {1 << i}:")
            lines += ["        " + x for x in self.formula(p, raw, f"r{i}")]
        if len(names) == 2:
            return [
                *lines,
                "    if needs == 3: return r0, r1",
                "    return r0 if needs == 1 else r1",
            ]
        lines.append("    r = []")
        for i in range(len(names)):
            lines.append(f"    if needs & {1 << i}: r.append(r{i})")
        return [*lines, "    return r if len(r) > 1 else r[0]"]

    def formula(self, p: str, raw: bool, to: str) -> list[str]:
        """The lines that unpack what the formula needs and call it."""
        lines: list[str] = []
        args = []
        rule = (self.row.raw_rules if raw else self.row.rules)[p]
        for n in names_of(rule):
            if n in ("g", "gs"):
                args.append(n)
            elif n == "xp":
                args.append("RAW" if raw else "RECORDED")
            elif n in self.row.takes:
                lines += self.unpack(n)
                have = f"None if {n} is None else " if n in self.row.optional else ""
                args.append(f"({have}{n}._array)" if raw else n)
            elif n == self.row.many:
                lines.append(f"{n} = take_many(node, '{n}')")
                args.append(f"[t._array for t in {n}]" if raw else n)
            elif n == "result" or n in self.row.outputs:
                lines.append(f"{n} = node._{n}")
                lines.append(f"if node.cell.count: {n} = take_result(node, '{n}')")
                at = 0 if n == "result" else self.row.outputs.index(n)
                args.append(n if raw else f"as_saved(node, {n}, {at})")
            else:
                args.append(f"node._{n}")
        if is_identity(rule):
            return [f"{to} = g" if to else "return g"]
        call = f"{'raw_' if raw else ''}rule_{p}({', '.join(args)})"
        if not (self.row.singular or self.row.elementwise):
            return [*lines, f"{to} = {call}" if to else f"return {call}"]
        test = "trouble.met" if self.row.singular else "trouble.discarded and trouble.met"
        repair = "annihilated" if raw else "annihilated_tensor"
        to, done = (to, []) if to else ("r", ["return r"])
        return [
            *lines,
            f"{to} = {call}",
            f"if {test}: {to} = {repair}({to}, g)",
            *done,
        ]

    def unpack(self, n: str) -> list[str]:
        test = f"{n} is not None and " if n in self.row.optional else ""
        return [
            f"{n} = node._{n}",
            f"if {test}{n}._cell is not None: {n} = take(node, '{n}', {n})",
        ]
