"""op(): one declaration becomes a function, a method, and both backward passes.

Note [One row an op]
    A row gives the signature, the kernel (ndarrays and plain arguments to an ndarray)
    and, for each differentiable argument, a formula for its gradient. The parameters of
    a formula say what it needs, and the node saves exactly that:
        g                  the gradient of the output (gs: a list, one for each output)
        self, other, …     that tensor argument       self_shape   only its shape
        result, or the name of an output               dim, index…  plain arguments
        xp                 the namespace of the gradient's world
    A formula runs on ndarrays when the backward pass is not recorded and on tensors when
    it is. `xp.name` is then the row's kernel, or the row itself.

Note [Other names]
    torch's functions take `input=` for the first argument, `axis=` for `dim=`, `keepdims=`
    and `out=` too. All of them arrive in `**more`, which sends the call round once more.

Note [Generated code]
    From a row, straight Python is written and compiled: one function with the row's
    signature that checks the types, calls the kernel and wraps the result; `record`,
    which makes the node; and the node's `raw` and `recorded`. It is compiled when the op
    is first called: until then the function's body is a stub that replaces its own
    code. Tracebacks and debuggers show the generated lines, through `linecache`.
"""

from __future__ import annotations

import ast
import linecache
import re
import weakref
from collections import namedtuple
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from gradfn import _dtypes, _state
from gradfn._guard import check
from gradfn._kinds import MISSING, kind_of
from gradfn.graph import saved, view
from gradfn.graph.node import Node, new, output_of, ticks
from gradfn.ops import admit, texts
from gradfn.ops import uniform as uniform_gradients
from gradfn.ops.source import Source, parameters, split, takes_names
from gradfn.ops.world import PUBLIC, RAW, RECORDED
from gradfn.tensor import INTERMEDIATE, LEAF, Cell, Tensor, wrap

TABLE: dict[str, Op] = {}

# What the name of a row that users do not call adds to the name that they know.
INNER = r"^_|_(dim|all|tensors?|number|value|src|bits|alias)$"


class Op:
    """A row of the table."""

    writes = False  # Writer's are

    def __init__(
        self,
        signature: str,
        kernel: Callable[..., Any],
        *,
        rules: dict[str, Callable[..., Any]],
        takes: str = "",
        numbers: str = "",
        floats: bool = False,
        many: str = "",
        outputs: str = "",
        differentiable: int = 1,
        view: bool = False,
        node: str = "",
        overload: str = "",
        explain: Callable[..., Exception | None] | None = None,
        ufunc: Any = None,
        uniform: bool = False,
        linear: bool = False,
        constant: bool = False,
        singular: bool = False,
        discards: bool = False,
        direct: Any = None,
        kinds: dict[str, str] | None = None,
        raw: dict[str, Callable[..., Any]] | None = None,
    ) -> None:
        name, _, rest = signature.partition("(")
        self.name = name
        self.title = re.sub(INNER, "", name) if name[0] == "_" else name  # for messages
        self.signature = rest.rpartition(")")[0]
        self.names = parameters(self.signature)  # with the bare star
        self.params = [p for p in self.names if p != "*"]
        taken = [p for p in self.params if OWN_NAME(p)]
        if taken:  # generated code means something else by it
            raise ValueError(f"{self.name}: call the parameter {taken[0]} something else")
        strange = [p for p in rules if p not in self.params]
        if strange:
            raise TypeError(f"{self.name}: {strange[0]!r} is neither option nor argument")
        self.kernel = kernel
        self.rules = rules
        self.takes = [
            p for p in self.params if p != many and (p in rules or p in takes.split())
        ]
        # Of two operands, whose dtypes meet: which may be Python numbers? "any", "one" of
        # them, the "second" alone, or "no" one. Empty: the op is no such one.
        self.numbers = numbers
        self.floats = floats  # integers become the default dtype
        self.many = many  # the argument that is a sequence of tensors
        self.outputs = outputs.split()
        self.differentiable = differentiable
        self.view = view
        self.node = node or "".join(w.capitalize() for w in name.split("_"))
        self.overload = overload
        self.explain = explain
        # What writes the result in place: the kernel itself, or what it comes to when
        # the plain arguments have their defaults.
        self.ufunc = kernel if isinstance(kernel, np.ufunc) else ufunc
        self.uniform = uniform  # Note [Uniform gradients]
        self.linear = linear  # in each of its tensors
        self.constant = constant  # one value in all elements of the result
        self.singular = singular  # Note [Zero annihilates], and so are the next two
        self.discards = discards
        self.elementwise = self.ufunc is not None
        self.raw_rules = {**rules, **(raw or {})}  # faster twins, for ndarrays only
        self.direct = direct  # the kernel of Python's operator, with defaults only
        self.optional = [p for p in self.takes if f"{p}=None" in self.signature]
        self.function: Any = _stub(self)
        self.saved: list[str] = []
        self.record: Any = None  # makes the node for a result
        self.result_type: Any = None
        self.defaults: tuple[Any, ...] = ()  # of the plain arguments
        self.kinds = kinds or {}  # of them, others are guessed: Note [Kinds of arguments]
        self.parts = Part(self)
        self.writer = Writer(self)

    @property
    def plain(self) -> list[str]:
        """The arguments that are not tensors."""
        return [p for p in self.params if p not in self.takes]

    def call_kernel(self, args: Any, arrays: Any) -> Any:
        """The kernel's result for the row's arguments, `arrays` in the tensors' place."""
        values = dict(zip(self.params, args, strict=True))
        values.update(zip(self.takes, arrays, strict=True))
        names = self.names
        star = names.index("*") if "*" in names else len(names)
        rest = names[star + 1 :]
        if not takes_names(self.kernel):
            return self.kernel(*(values[p] for p in names if p != "*"))
        keywords = {p: values[p] for p in rest}
        return self.kernel(*(values[p] for p in names[:star]), **keywords)

    @property
    def plain_defaults(self) -> list[str]:
        """The same with their defaults, as they stand in the signature."""
        return [p for p in split(self.signature) if p.partition("=")[0] in self.plain]

    def plain_values(self) -> tuple[Any, ...]:
        """The default of each plain argument; MISSING where it has none."""
        texts = [p.partition("=")[2] for p in self.plain_defaults]
        return tuple(ast.literal_eval(t) if t else MISSING for t in texts)


class Writer:
    """A row's in-place op, where arguments that are not plain tensors meet it."""

    writes = True

    def __init__(self, row: Op) -> None:
        self.row = row
        self.name = f"{row.name}_"
        self.title = f"{row.title}_"

    @property
    def function(self) -> Any:
        """The method of Tensor."""
        return getattr(Tensor, self.name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.row, name)


class Part:
    """One of the views that an op with several makes: what a View's chain needs."""

    def __init__(self, row: Op) -> None:
        self.row = row

    def function(self, t: Any, i: int, *args: Any) -> Any:
        """View number `i` of a tensor."""
        return self.row.function(t, *args)[i]

    def kernel(self, array: Any, i: int, *args: Any) -> Any:
        """View number `i` of an array."""
        return self.row.kernel(array, *args)[i]


def op(signature: str, kernel: Callable[..., Any], **options: Any) -> Op:
    """Declares an op; options are Op's, and a formula for each differentiable argument.

    The op becomes a method of Tensor unless `method=False`, and an attribute of gradfn
    unless `function=False`; `inplace=True` adds the method with a trailing underscore.
    """
    known = Op.__init__.__kwdefaults__ or {}
    method = options.pop("method", True)
    inplace = options.pop("inplace", False)
    public = options.pop("function", True)
    rules = {k: options.pop(k) for k in list(options) if k not in known}
    row = Op(signature, kernel, rules=rules, **options)
    row.function.__doc__ = texts.text(row.name, row.signature)
    TABLE[row.name] = row
    if public:
        PUBLIC[row.name] = row.function
    setattr(RAW, row.name, kernel)
    setattr(RECORDED, row.name, row.function)
    if method:
        setattr(Tensor, row.name, row.function)
    if inplace:
        writer = _stub(row, row.name + "_")
        writer.__doc__ = f"`{row.name}`, written into the tensor itself; returns it."
        setattr(Tensor, row.name + "_", writer)
    return row


def operator(name: str, row_name: str, reflected: bool = False) -> None:
    """Python's operator `name` (as `__add__`) from a row of two operands."""
    setattr(Tensor, name, _stub(TABLE[row_name], name, reflected=reflected))


def alias(new_name: str, name: str, method: bool = True) -> None:
    """Another name for a row."""
    row = TABLE[name]
    setattr(RAW, new_name, row.kernel)
    setattr(RECORDED, new_name, row.function)
    if name in PUBLIC:
        PUBLIC[new_name] = row.function
    if method:
        setattr(Tensor, new_name, row.function)
        if hasattr(Tensor, name + "_"):
            setattr(Tensor, new_name + "_", getattr(Tensor, name + "_"))


# -- compiling -------------------------------------------------------------------------

READY: list[tuple[Op, str, Any]] = []  # what was compiled: row, name, function
TELL_READY: list[Callable[[Op, str, Any], None]] = []  # whom to tell of more


def _stub(row: Op, name: str = "", reflected: bool = False) -> FunctionType:
    """A function that compiles itself when it is first called.

    `name` is the row's own, that with an underscore (in-place), or an operator's.
    """
    name = name or row.name

    def ready() -> None:
        _compile(row)
        text = Source(row, name, reflected).function()
        made = _execute(name, text, row)[name]
        function.__code__ = made.__code__
        function.__defaults__ = made.__defaults__
        function.__kwdefaults__ = made.__kwdefaults__
        READY.append((row, name, function))
        for tell in TELL_READY:
            tell(row, name, function)

    function = FunctionType(_stub_code(name), SPACE, name)
    function.__qualname__ = name if name == row.name else f"Tensor.{name}"
    function.__module__ = "gradfn"
    SPACE[f"ready_{name}"], SPACE[f"me_{name}"] = ready, function
    return function


def _first_call(*args: Any, **kwargs: Any) -> Any:
    ready()  # type: ignore[name-defined]  # noqa: F821 - see _stub_code
    return me(*args, **kwargs)  # type: ignore[name-defined]  # noqa: F821


def _stub_code(name: str) -> Any:
    """The code of `_first_call`, for the function called `name`."""
    code = _first_call.__code__
    names = tuple(f"{n}_{name}" for n in code.co_names)
    return code.replace(co_name=name, co_qualname=name, co_names=names)


def _execute(name: str, source: str, row: Op) -> dict[str, Any]:
    """Runs generated text in SPACE, where a row's own names carry the row's name."""
    source = re.sub(rf"\b({OWN})\b", rf"\1_{row.name}", source)
    source = re.sub(r"\bme\b", f"me_{name}", source)
    filename = f"<gradfn op {name}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    found: dict[str, Any] = {}
    exec(compile(source, filename, "exec"), SPACE, found)
    return found


# The names in generated text that mean another thing for each row.
OWN = r"OP|WRITER|kernel|direct|Node[01]|record|result_type|rule_\w+|raw_rule_\w+"
OWN_NAME = re.compile(OWN).fullmatch

# Where all generated code runs: one dict, so that what ops have in common stays cached.
SPACE: dict[str, Any] = {
    "LEAF": LEAF,
    "MISSING": MISSING,
    "Cell": Cell,
    "Tensor": Tensor,
    "asarray": np.asarray,
    "new": new,
    "ndarray": np.ndarray,
    "mode": _state.mode,
    "trouble": _state.trouble,
    "run": _state.run,
    "ticks": ticks,
    "edge": view.edge,
    "wrap": wrap,
    "note_version": saved.note_version,
    "note_versions": saved.note_versions,
    "output_of": output_of,
    "ref": weakref.ref,
    "check": check,
    "promote_arrays": _dtypes.promote_arrays,
    "default_dtype": _dtypes.default_dtype,
    "mark_view": view.mark_view,
    "MULTI": view.MULTI,
    "admit_pair": admit.admit_pair,
    "admit_second": admit.admit_second,
    "admit_operator": admit.admit_operator,
    "admit": admit.admit,
    "admit_many": admit.admit_many,
    "RAW": RAW,
    "RECORDED": RECORDED,
    "__name__": "gradfn.ops",
}


def _compile(row: Op) -> None:
    """Makes the node classes and `record` of a row (once)."""
    if f"OP_{row.name}" in SPACE:
        return
    _load_helpers()
    source = Source(row)
    row.defaults = row.plain_values()
    guessed = zip(row.plain, row.defaults, strict=True)
    row.kinds = {p: kind_of(p, "", default) for p, default in guessed} | row.kinds
    own: dict[str, Any] = {"OP": row, "kernel": row.kernel, "direct": row.direct}
    own["WRITER"] = row.writer
    own.update({f"rule_{k}": v for k, v in row.rules.items()})
    own.update({f"raw_rule_{k}": v for k, v in row.raw_rules.items()})
    if len(row.outputs) > 1:
        own["result_type"] = _result_type(row)
    SPACE.update({f"{k}_{row.name}": v for k, v in own.items()})
    if row.rules:
        row.saved = source.slots()
        made = _execute(f"{row.name} backward", source.backward(), row)
        for i in range(2 if row.overload else 1):
            whole = "Backward" in row.node
            cls = node_class(row.node if whole else f"{row.node}Backward{i}", row, made)
            SPACE[f"Node{i}_{row.name}"] = cls
        made = _execute(f"{row.name} record", source.record(), row)
        row.record = SPACE[f"record_{row.name}"] = made[f"record_{row.name}"]


def _load_helpers() -> None:
    """Completes SPACE with what is imported late."""
    if "rare" in SPACE:
        return
    from gradfn.ops import inplace, names, rare, zeros

    SPACE.update(
        failed=rare.failed,
        renamed=names.renamed,
        missing=names.missing,
        rare=rare.rare,
        take=rare.take,
        take_many=rare.take_many,
        take_result=rare.take_result,
        as_saved=rare.as_saved,
        RELEASED=saved.RELEASED,
        some=rare.some,
        written=inplace.written,
        is_intermediate=rare.is_intermediate,
        annihilated=zeros.annihilated,
        annihilated_tensor=zeros.annihilated_tensor,
        one_value=uniform_gradients.one_value,
        everywhere=uniform_gradients.everywhere,
        INTERMEDIATE=INTERMEDIATE,
    )


def _result_type(row: Op) -> Any:
    public = row.name.removeprefix("_").removesuffix("_dim")
    kind = namedtuple(public, row.outputs)  # type: ignore[misc]
    kind.__module__ = "torch.return_types"
    kind.__repr__ = _result_repr  # type: ignore[method-assign]
    return kind


def _result_repr(self: Any) -> str:
    lines = ",\n".join(f"{k}={v!r}" for k, v in zip(self._fields, self, strict=True))
    return f"torch.return_types.{type(self).__name__}(\n{lines})"


def node_class(name: str, row: Op, made: dict[str, Any]) -> type[Node]:
    """The node class of a row."""
    body = {
        "__slots__": tuple(row.saved),
        "__module__": "torch.autograd.graph",
        "op": row,
        "_arity": 0 if row.many else len(row.rules),
        "_raw": made["raw"],
        "_recorded": made["recorded"],
        "_takes_none": False,
    }
    if "_release" in made:
        body["_release"] = made["_release"]
    *space, short = name.split("::")
    if space:
        body["_name"] = lambda node: name
    return type(short, (Node,), body)
