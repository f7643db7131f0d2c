"""What tables on the pages say is so."""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gradfn as torch
from gradfn.autograd import forward_ad

DOCS = Path(__file__).parents[2] / "docs"
X = torch.tensor([1.0, 2.0, 3.0])


def cube(split: bool, **rules: bool) -> Callable[..., Any]:
    """x³ as a Function with some of the rules."""

    def save(ctx: Any, inputs: Any, output: Any = None) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    def forward(ctx: Any, x: Any) -> Any:
        save(ctx, (x,))
        return x**3

    def rule(ctx: Any, g: Any) -> Any:
        return 3 * ctx.saved_tensors[0] ** 2 * g

    body: dict[str, Any] = {"forward": forward, "generate_vmap_rule": rules["vmap"]}
    if split:
        body |= {"forward": lambda x: x**3, "setup_context": save}
    body |= {name: rule for name in ("backward", "jvp") if rules[name]}
    static = {k: staticmethod(v) if callable(v) else v for k, v in body.items()}
    return type("Cube", (torch.autograd.Function,), static).apply  # type: ignore


def dual(f: Any) -> None:
    with forward_ad.dual_level():
        f(forward_ad.make_dual(X, X))


TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "backward()": lambda f: f(X.clone().requires_grad_()).sum().backward(),
    "forward_ad": dual,
    "func.grad": lambda f: torch.func.grad(lambda x: f(x).sum())(X),
    "func.vjp": lambda f: torch.func.vjp(f, X)[1](X),
    "func.jvp": lambda f: torch.func.jvp(f, (X,), (X,)),
    "func.vmap": lambda f: torch.func.vmap(f)(X),
    "func.jacrev": lambda f: torch.func.jacrev(f)(X),
    "func.jacfwd": lambda f: torch.func.jacfwd(f)(X),
    "func.hessian": lambda f: torch.func.hessian(lambda x: f(x).sum())(X),
}


def table() -> dict[str, list[bool]]:
    """Transform: does it need setup_context, backward, jvp, vmap?"""
    text = (DOCS / "howto" / "vmap-and-jvp.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(.*?)`.*?\|(.*)\|$", text, re.MULTILINE)
    return {name: ["yes" in cell for cell in rest.split("|")] for name, rest in rows}


def test_the_table_has_every_transform() -> None:
    assert list(table()) == list(TRANSFORMS)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_transform_needs_the_rules_of_the_table(name: str) -> None:
    needed = table()[name]
    for has in itertools.product([False, True], repeat=4):
        function = cube(has[0], backward=has[1], jvp=has[2], vmap=has[3])
        enough = all(h or not n for h, n in zip(has, needed, strict=True))
        with warnings.catch_warnings(action="ignore"):
            if enough:
                TRANSFORMS[name](function)
            else:
                with pytest.raises((RuntimeError, NotImplementedError)):
                    TRANSFORMS[name](function)


def test_the_kernel_is_about_300_lines() -> None:
    text = (DOCS / "kernel.md").read_text(encoding="utf-8")
    code = "".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    assert 200 < sum(bool(line.strip()) for line in code.splitlines()) <= 300


@pytest.mark.parametrize("page", ["architecture.md", "kernel.md"])
def test_files_that_are_named_exist(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    source = Path(torch.__file__).parent
    known = {str(p.relative_to(source)) for p in source.rglob("*.py")}
    known |= {name.rpartition("/")[2] for name in known}
    named = re.findall(r"`([\w/]+\.py)`", text)
    assert named
    assert [name for name in named if name not in known] == []


def test_notes_that_are_named_exist() -> None:
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    source = Path(torch.__file__).parent
    code = "".join(p.read_text(encoding="utf-8") for p in source.rglob("*.py"))
    notes = {re.sub(r"\s+", " ", n) for n in re.findall(r"Note \[([^\]]*)\]", text)}
    assert len(notes) > 5
    assert [n for n in notes if f"Note [{n}]" not in code] == []


def test_what_the_page_of_differences_says_is_so() -> None:
    assert torch.ones(1, dtype=torch.complex64).conj().is_conj() is False
    index = torch.tensor([0, 1])
    leaf = torch.ones(3, requires_grad=True)
    taken = leaf[index]
    index[0] = 2
    taken.sum().backward()
    assert leaf.grad.tolist() == [1.0, 1.0, 0.0]
    with pytest.raises(RuntimeError, match="meta"):
        torch.ones(1, device="meta")
    with pytest.warns(UserWarning, match="mixed precision"), torch.autocast("cpu"):
        assert (torch.ones(1, 1) @ torch.ones(1, 1)).dtype == torch.float32
    with pytest.raises(AttributeError, match="gradfn, not PyTorch"):
        torch.sparse_coo_tensor
    base = leaf * 1
    with torch.no_grad():
        view = base[:1]
    (view * 3).sum().backward()
    assert (view.is_leaf, view.grad.tolist()) == (True, [3.0])
