"""Every error in docs/errors.md is raised as it says, and none is missing there."""

from __future__ import annotations

import re
from copy import deepcopy
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import gradfn as torch
from gradfn.autograd import gradcheck
from gradfn.autograd.function import once_differentiable
from gradfn.autograd.graph import (
    GradientEdge,
    disable_saved_tensors_hooks,
    get_gradient_edge,
    register_multi_grad_hook,
    saved_tensors_hooks,
)

TABLE = Path(__file__).parents[1] / "docs" / "errors.md"
ROW = re.compile(r"^\| (?!name )([a-z-]+) \| (\w+) \| (.+?) \|", re.MULTILINE)
ROWS = ROW.findall(TABLE.read_text(encoding="utf-8"))


def function(forward: Any = None, backward: Any = None) -> Any:
    """A Function from two plain functions."""
    body: dict[str, Any] = {}
    if forward:
        body["forward"] = staticmethod(forward)
    if backward:
        body["backward"] = staticmethod(backward)
    return type("Mine", (torch.autograd.Function,), body)


def double(ctx: Any, x: Any) -> Any:
    return x * 2


def leaf(*values: float, **options: Any) -> Any:
    return torch.tensor(values or (1.0, 2.0), requires_grad=True, **options)


def run(backward: Any, forward: Any = double, *more: Any) -> None:
    """Backward through a Function."""
    function(forward, backward).apply(leaf(), *more).sum().backward()


def dirty(ctx: Any, x: Any) -> Any:
    ctx.mark_dirty(x)
    return x.mul_(2)


def twice(make: Any) -> None:
    """A second derivative."""
    x = leaf()
    (g,) = torch.autograd.grad((make(x) * x).sum(), x, create_graph=True)
    torch.autograd.grad(g.sum(), x)


def no_grad_view(t: Any) -> Any:
    with torch.no_grad():
        return t.view(2)


def inference() -> Any:
    with torch.inference_mode():
        return torch.ones(2)


def both() -> Any:
    made = function(double, lambda ctx, g: g)
    made.vjp = staticmethod(lambda ctx, g: g)
    return type("Both", (made,), {"vjp": made.vjp})


def intermediate(ctx: Any, x: Any) -> Any:
    square = x * x
    ctx.save_for_backward(x, square)
    return x * square


def intermediate_back(ctx: Any, g: Any) -> Any:
    x, square = ctx.saved_tensors
    return g * (square + 2 * x * x)


def used_up() -> Any:
    y = (leaf() * leaf()).sum()
    y.backward()
    return y


def saved_gone() -> None:
    def save(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * 2

    y = function(save, lambda ctx, g: g).apply(leaf())
    y.sum().backward()
    y.grad_fn.saved_tensors


def modified() -> None:
    y = leaf().exp()
    y.add_(1)
    y.sum().backward()


def nan_made() -> None:
    with (
        torch.autograd.detect_anomaly(),
        pytest.warns(UserWarning, match="Error detected"),
    ):
        leaf(-1.0).sqrt().sum().backward()


def inf_made() -> None:
    with (
        torch.autograd.detect_anomaly(check_inf=True),
        pytest.warns(UserWarning, match="Error detected"),
    ):
        leaf(0.0).sqrt().backward()


def hooked(hook: Any) -> None:
    x = leaf()
    x.register_hook(hook)
    x.sum().backward()


def packed(pack: Any, unpack: Any) -> None:
    with saved_tensors_hooks(pack, unpack):
        y = leaf().exp()
    y.sum().backward()


def disabled() -> None:
    with disable_saved_tensors_hooks("not here"), saved_tensors_hooks(id, id):
        pass


def saved_hooks_twice() -> None:
    raw = leaf().exp().grad_fn._raw_saved_result
    raw.register_hooks(id, id)
    raw.register_hooks(id, id)


def saved_hooks_late() -> None:
    y = leaf().exp()
    raw = y.grad_fn._raw_saved_result
    y.sum().backward()
    raw.register_hooks(id, id)


ticks = count()


def checked(backward: Any) -> None:
    """gradcheck of 2x."""
    gradcheck(function(double, backward).apply, leaf(dtype=torch.float64))


def post_hook_result() -> None:
    x = leaf()
    x.register_post_accumulate_grad_hook(lambda t: t)
    x.sum().backward()


PROVOKE: dict[str, Any] = {
    "no-forward": lambda: function().apply(leaf()),
    "no-backward": lambda: run(None),
    "backward-and-vjp": lambda: both().apply(leaf()).sum().backward(),
    "instance-called": lambda: deepcopy(object.__new__(function(double)))(leaf()),
    "unknown-argument": lambda: function(double).apply(leaf(), other=1),
    "saved-non-tensor": lambda: run(
        None, lambda ctx, x: (ctx.save_for_backward(5), x * 2)[1]
    ),
    "saved-for-forward": lambda: run(None, lambda ctx, x: ctx.save_for_forward(5)),
    "too-few-gradients": lambda: run(lambda ctx, g: g, lambda ctx, x, n: x * n, 2),
    "too-many-gradients": lambda: run(lambda ctx, g: (g, g)),
    "gradient-of-a-flag": lambda: run(
        lambda ctx, g: (g, g), lambda ctx, x, n: x * 2, True
    ),
    "gradient-no-tensor": lambda: run(lambda ctx, g: 5),
    "gradient-shape": lambda: run(lambda ctx, g: torch.ones(3)),
    "gradient-container": lambda: (
        function(lambda ctx, xs: xs[0] * 2, lambda ctx, g: g)
        .apply([leaf()])
        .sum()
        .backward()
    ),
    "gradient-structure": lambda: (
        function(lambda ctx, xs: xs[0] * xs[1], lambda ctx, g: [g])
        .apply([leaf(), leaf()])
        .sum()
        .backward()
    ),
    "dirty-not-returned": lambda: function(lambda ctx, x: dirty(ctx, x) * 1).apply(
        leaf() * 1
    ),
    "dirty-no-input": lambda: function(lambda ctx, x: dirty(ctx, x * 1)).apply(leaf()),
    "dirty-leaf": lambda: function(dirty).apply(leaf()),
    "dirty-view-of-several": lambda: function(
        lambda ctx, x: (dirty(ctx, x), x * 1)
    ).apply((leaf() * 1)[:1]),
    "twice-through-once": lambda: twice(
        function(double, once_differentiable(lambda ctx, g: g * 2)).apply
    ),
    "intermediate": lambda: twice(function(intermediate, intermediate_back).apply),
    "function-view-written": lambda: (
        function(lambda ctx, x: x.view(2), lambda ctx, g: g).apply(leaf() * 1).mul_(2)
    ),
    "nothing-requires-grad": lambda: torch.ones(1).backward(),
    "not-scalar": lambda: (leaf() * 2).backward(),
    "complex-scalar": lambda: (leaf(1.0) * 1j).sum().backward(),
    "seed-complex": lambda: (leaf() * 2).backward(torch.tensor([1j, 1j])),
    "seed-shape": lambda: (leaf() * 2).backward(torch.ones(3)),
    "seed-type": lambda: torch.autograd.backward(leaf() * 2, [5]),
    "seed-count": lambda: torch.autograd.backward([leaf() * 2], [torch.ones(2)] * 2),
    "second-time": lambda: used_up().backward(),
    "saved-gone": saved_gone,
    "modified": modified,
    "unused-input": lambda: torch.autograd.grad((leaf() * 2).sum(), leaf()),
    "input-without-grad": lambda: torch.autograd.grad(leaf().sum(), torch.ones(1)),
    "backward-input-without-grad": lambda: leaf().sum().backward(inputs=[torch.ones(1)]),
    "no-tensor": lambda: torch.autograd.backward([5]),
    "no-inputs": lambda: leaf().sum().backward(inputs=[]),
    "unused-and-zeros": lambda: torch.autograd.grad(
        leaf().sum(), leaf(), materialize_grads=True, allow_unused=False
    ),
    "nan-made": nan_made,
    "inf-made": inf_made,
    "leaf-written": lambda: leaf().add_(1),
    "leaf-view-written": lambda: leaf().view(2).add_(1),
    "multi-view-written": lambda: (leaf() * 1).unbind()[0].add_(1),
    "no-grad-view-written": lambda: no_grad_view(leaf() * 1).add_(1),
    "expanded-written": lambda: torch.ones(1).expand(3).add_(1),
    "overlapping-written": lambda: (lambda t: t[1:].add_(t[:-1]))(torch.ones(3)),
    "inference-written": lambda: inference().add_(1),
    "inference-saved": lambda: inference() * leaf(),
    "inference-leaf": lambda: inference().requires_grad_(),
    "integer-leaf": lambda: torch.tensor([1]).requires_grad_(),
    "integer-new": lambda: torch.ones(1, dtype=torch.int64, requires_grad=True),
    "computed-flag": lambda: (leaf() * 2).requires_grad_(False),
    "grad-type": lambda: setattr(leaf(), "grad", 5),
    "grad-shape": lambda: setattr(leaf(), "grad", torch.ones(3)),
    "grad-dtype": lambda: setattr(leaf(), "grad", torch.ones(2, dtype=torch.float64)),
    "grad-itself": lambda: (lambda x: setattr(x, "grad", x))(leaf()),
    "data-type": lambda: setattr(leaf(), "data", 5),
    "data-integer": lambda: setattr(leaf(), "data", torch.tensor([1])),
    "retain-nothing": lambda: torch.ones(2).retain_grad(),
    "numpy-of-recorded": lambda: leaf().numpy(),
    "detach-view": lambda: (leaf() * 1).view(2).detach_(),
    "deepcopy-computed": lambda: deepcopy(leaf() * 1),
    "edge-without-grad": lambda: get_gradient_edge(torch.ones(1)),
    "edge-unknown": lambda: torch.autograd.grad(
        leaf().sum(), GradientEdge(leaf().unbind()[0].grad_fn, 7)
    ),
    "hook-without-grad": lambda: torch.ones(1).register_hook(print),
    "hook-not-callable": lambda: leaf().register_hook(5),
    "hook-result": lambda: hooked(lambda g: 5),
    "hook-shape": lambda: hooked(lambda g: g.sum()),
    "hook-dtype": lambda: hooked(lambda g: g.double()),
    "post-hook-on-result": lambda: (leaf() * 1).register_post_accumulate_grad_hook(print),
    "post-hook-result": post_hook_result,
    "pack-writes": lambda: packed(lambda t: t.detach().add_(1), lambda t: t),
    "unpack-result": lambda: packed(lambda t: 5, lambda t: t),
    "hooks-disabled": disabled,
    "saved-hooks-twice": saved_hooks_twice,
    "saved-hooks-late": saved_hooks_late,
    "multi-hook-mode": lambda: register_multi_grad_hook([leaf()], print, mode="some"),
    "check-nothing": lambda: gradcheck(lambda x: x, torch.ones(1)),
    "check-expanded": lambda: gradcheck(
        lambda x: x * 1, torch.ones(1).double().expand(2).requires_grad_()
    ),
    "check-jacobian": lambda: checked(lambda ctx, g: g),
    "check-hidden": lambda: gradcheck(lambda x: x.detach() * 2, leaf().double()),
    "check-reentrant": lambda: checked(lambda ctx, g: g * (2 + 1e-9 * next(ticks))),
}


def test_each_row_is_provoked_here_and_nothing_else() -> None:
    assert [name for name, _, _ in ROWS] == list(PROVOKE)


@pytest.mark.parametrize(("name", "kind", "phrase"), ROWS, ids=[row[0] for row in ROWS])
def test_error(name: str, kind: str, phrase: str) -> None:
    with pytest.raises(Exception, match=re.escape(phrase)) as caught:
        PROVOKE[name]()
    assert caught.type.__name__ == kind
