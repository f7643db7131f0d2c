"""Calls with something wrong in them, made from the samples.

One argument of a sample's call is replaced by something that it cannot be (or can, for a
tensor of another dtype is often right), left out, or added. All that is made from a
sample is known; `some` takes a few of them, by a seed, so that a run is repeatable.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator
from typing import Any

from samples import samples

# What may stand in the place of an argument, `@` for the argument itself.
_TEXT = """
None; 'text'; 1.5; float('nan'); 99; -99; -1; True; 1j; 10**30; []; [1, 'a']; [x]; (1, 2, 3);
{}; object(); slice(1); torch.float32; s; t; o; e; i; b; z; f; (@)[..., None];
(@).reshape(-1); (@)[..., 1:]; (@)[..., :0]; (@).to(torch.int64); (@).to(torch.float16);
(@) + 0j; (@).bool(); [@]
"""
THINGS = [text.strip() for text in _TEXT.split(";")]
OUTS = (
    "3",
    "[x]",
    "torch.empty(0, dtype=torch.int8)",
    "torch.empty(0, dtype=torch.cdouble)",
)
DEVICES = ("'meta'", "'cuda'", "'nonsense'", "3.5")


def bad_calls(sample: str) -> Iterator[str]:
    """Every call with one thing wrong that can be made of a sample."""
    tree = ast.parse(sample, mode="eval")
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
    call = next((c for c in calls if isinstance(c.func, ast.Attribute)), None)
    if call is None:
        return
    for holder, key, old in _places(call):
        plain = ast.unparse(old)
        for text in THINGS:
            new = text.replace("@", plain)
            if "(@)" in text and not _may_be_tensor(old):
                continue
            if (
                holder is not call.args
                and holder not in call.keywords
                and not _tensor(text)
            ):
                continue  # a method's own tensor stays one
            yield _with(tree, holder, key, old, new)
    yield from _more_or_fewer(tree, call)


def _may_be_tensor(old: ast.expr) -> bool:
    if isinstance(old, ast.Attribute) and ast.unparse(old).startswith("torch."):
        return False  # a dtype
    if isinstance(old, ast.Call) and ast.unparse(old).startswith("float("):
        return False
    if ast.unparse(old) in ("...", "Ellipsis"):
        return False
    return not isinstance(old, (ast.Constant, ast.UnaryOp, ast.Tuple, ast.List))


def _tensor(text: str) -> bool:
    return text in "stoeibzf" or ("@" in text and not text.startswith("["))


def _places(call: ast.Call) -> list[tuple[Any, Any, ast.expr]]:
    """Where arguments stand: the holder, the key in it, and what is there."""
    places: list[tuple[Any, Any, ast.expr]] = [
        (call.args, k, old)
        for k, old in enumerate(call.args)
        if not isinstance(old, ast.Starred)
    ]
    places += [(k, "value", k.value) for k in call.keywords]
    function = call.func
    assert isinstance(function, ast.Attribute)
    if not ast.unparse(function.value).startswith("torch"):
        places.append((function, "value", function.value))
    return places


def _with(tree: ast.AST, holder: Any, key: Any, old: ast.expr, new: str) -> str:
    """The text of the whole with `new` in the place of `old`."""
    value = ast.parse(new, mode="eval").body
    if isinstance(holder, list):
        holder[key] = value
    else:
        setattr(holder, key, value)
    try:
        return ast.unparse(tree)
    finally:
        if isinstance(holder, list):
            holder[key] = old
        else:
            setattr(holder, key, old)


def _more_or_fewer(tree: ast.AST, call: ast.Call) -> Iterator[str]:
    """An argument left out, one too many, and names that nobody knows."""
    for k in range(len(call.args)):
        old = call.args.pop(k)
        yield ast.unparse(tree)
        call.args.insert(k, old)
    call.args.append(ast.Constant(7))
    yield ast.unparse(tree)
    call.args.pop()
    for name, texts in (("nonsense", ("1",)), ("out", OUTS), ("device", DEVICES)):
        if name == "out" and not ast.unparse(call.func).startswith("torch"):
            continue  # PyTorch's methods have none, gradfn's do
        for text in texts:
            value = ast.parse(text, mode="eval").body
            call.keywords.append(ast.keyword(name, value))
            yield ast.unparse(tree)
            call.keywords.pop()


def some(sample: str, count: int, seed: int = 0) -> list[str]:
    """`count` of them."""
    every = list(bad_calls(sample))
    return random.Random(f"{seed} {sample}").sample(every, min(count, len(every)))


def groups(size: int = 40) -> list[list[str]]:
    """The samples, some at a time: as many tests as that would be too many."""
    every = [text for text in samples() if text]
    return [every[k : k + size] for k in range(0, len(every), size)]
