"""save and load: tensors in containers, in files that hold data and no code.

Note [The file formats]
    A name that ends in `.safetensors` gives a file of that format, which other programs
    read; all else a zip of `.npy` members, which is what NumPy calls `.npz`. Tensors that
    stand in a dict of tensors have their own names in the file, others numbers. The rest
    (nesting, numbers, text, which tensors are parameters) is JSON in the member
    `__gradfn__`, or in the metadata. Reading executes nothing: arrays of Python objects
    and pickles, PyTorch's `.pt` among them, are refused.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections import OrderedDict
from typing import Any

import numpy as np

from gradfn._dtypes import dtype
from gradfn.nn.parameter import Parameter
from gradfn.tensor import LEAF, Size, Tensor, wrap

__all__ = ["load", "save"]

_KEY = "__gradfn__"
_TAGS = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "I16": "int16",
    "U16": "uint16",
    "F16": "float16",
    "I32": "int32",
    "U32": "uint32",
    "F32": "float32",
    "I64": "int64",
    "U64": "uint64",
    "F64": "float64",
}
_NAMES = {name: tag for tag, name in _TAGS.items()}
# dtypes that one format or NumPy itself has not: (how they lie in the file, more dims)
_OTHERWISE = {"bfloat16": "uint16", "complex64": "float32", "complex128": "float64"}


def save(obj: Any, f: Any, *args: Any, **kwargs: Any) -> None:
    """Writes tensors, arrays, numbers, text, None, and lists, tuples and dicts of them.

    `f` is a path or a file that is open for bytes. TypeError for what cannot be written
    as data, as modules: save their `state_dict()`.
    """
    writer = _Writer()
    told = json.dumps(writer.encode(obj, ()))
    if hasattr(f, "write"):
        _write_npz(f, writer.arrays, told)
        return
    path = os.fspath(f)
    write = _write_safetensors if str(path).endswith(".safetensors") else _write_npz
    with open(path, "wb") as file:
        write(file, writer.arrays, told)


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: Any = True,
    mmap: Any = None,
    **kwargs: Any,
) -> Any:
    """What `save` wrote; of a foreign `.npz` or `.safetensors` file a dict of tensors.

    Nothing in a file is executed. ValueError for pickles and files of no known form.
    """
    if hasattr(f, "read"):
        data = f.read()
    else:
        with open(os.fspath(f), "rb") as file:
            data = file.read()
    arrays, told = _read(data)
    if told is None:
        return {name: wrap(a) for name, a in arrays.items()}
    return _decode(json.loads(told), arrays)


# -- structure -----------------------------------------------------------------------------


class _Writer:
    """Takes an object apart into arrays and what JSON can say."""

    def __init__(self) -> None:
        self.arrays: dict[str, Any] = {}

    def _keep(self, array: Any, path: tuple[Any, ...]) -> list[str]:
        name = path[0] if len(path) == 1 and isinstance(path[0], str) else ""
        if not name or name == _KEY or name in self.arrays:
            name = f"{len(self.arrays)}"
            while name in self.arrays:
                name += "_"
        kind = array.dtype.name
        if kind in _OTHERWISE:
            array = np.ascontiguousarray(array)
            more = (2,) if kind.startswith("complex") else ()
            array = array.reshape(*array.shape, *[1] * len(more)).view(_OTHERWISE[kind])
        self.arrays[name] = array
        return [name, kind]

    def encode(self, x: Any, path: tuple[Any, ...]) -> Any:
        """The JSON of an object; its arrays are kept."""
        if isinstance(x, Tensor):
            what = "parameter" if isinstance(x, Parameter) else "tensor"
            return {what: self._keep(x._array, path), "grad": x.requires_grad}
        if isinstance(x, np.ndarray):
            return {"array": self._keep(x, path)}
        if isinstance(x, np.generic):
            x = x.item()
        if x is None or type(x) in (bool, int, float, str):
            return {"value": x}
        if type(x) is complex:
            return {"complex": [x.real, x.imag]}
        if isinstance(x, dtype):
            return {"dtype": str(x)}
        for kind, name in ((Size, "size"), (list, "list"), (tuple, "tuple")):
            if type(x) is kind:
                return {name: [self.encode(v, (*path, 0)) for v in x]}
        if isinstance(x, dict):
            name = "ordered" if isinstance(x, OrderedDict) else "dict"
            pairs = [
                [self.encode(k, (*path, 0, 0)), self.encode(v, (*path, k))]
                for k, v in x.items()
            ]
            return {name: pairs}
        raise TypeError(
            f"save() writes tensors, numbers, text and containers of them, but was given a "
            f"{type(x).__name__}. Of modules and optimizers, save the state_dict()."
        )


def _decode(x: Any, arrays: dict[str, Any]) -> Any:
    """The object that JSON and arrays describe."""
    (name, value), *more = x.items()
    if name in ("tensor", "parameter", "array"):
        array = _as_kind(arrays[value[0]], value[1])
        if name == "array":
            return array
        t = wrap(array, Parameter if name == "parameter" else Tensor)
        t._grad_fn = LEAF if more[0][1] else None
        return t
    if name == "value":
        return value
    if name == "complex":
        return complex(*value)
    if name == "dtype":
        import gradfn

        return getattr(gradfn, value.removeprefix("torch."))
    if name in ("list", "tuple", "size"):
        kind = {"list": list, "tuple": tuple, "size": Size}[name]
        return kind(_decode(v, arrays) for v in value)
    pairs = [(_decode(k, arrays), _decode(v, arrays)) for k, v in value]
    return OrderedDict(pairs) if name == "ordered" else dict(pairs)


def _as_kind(array: Any, kind: str) -> Any:
    if kind not in _OTHERWISE or array.dtype.name == kind:
        return array
    if kind == "bfloat16":
        import ml_dtypes

        return array.view(ml_dtypes.bfloat16)
    return np.ascontiguousarray(array).view(kind)[..., 0]


# -- files ---------------------------------------------------------------------------------


def _write_npz(file: Any, arrays: dict[str, Any], told: str) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, array in {**arrays, _KEY: np.array(told)}.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(
                    member, np.asanyarray(array), allow_pickle=False
                )


def _write_safetensors(file: Any, arrays: dict[str, Any], told: str) -> None:
    header: dict[str, Any] = {"__metadata__": {_KEY: told}}
    begin = 0
    for name, array in arrays.items():
        tag = _NAMES.get(array.dtype.name)
        if tag is None:
            raise TypeError(f"save(): safetensors has no dtype {array.dtype}")
        end = begin + array.nbytes
        shape = list(array.shape)
        header[name] = {"dtype": tag, "shape": shape, "data_offsets": [begin, end]}
        begin = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little") + text)
    for array in arrays.values():
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        file.write(np.ascontiguousarray(little).tobytes())


def _read(data: bytes) -> tuple[dict[str, Any], Any]:
    """(arrays by name, JSON or None) of a file of either form."""
    if data[:4] == b"PK\x03\x04":
        return _read_npz(data)
    if data[:1] == b"\x80":
        raise ValueError(_PICKLED)
    size = int.from_bytes(data[:8], "little")
    if len(data) < 8 or size > len(data) - 8 or data[8:9] != b"{":
        raise ValueError(
            "load(): the file is neither .npz nor .safetensors, which are what save() writes"
        )
    header = json.loads(data[8 : 8 + size])
    told = header.pop("__metadata__", {}).get(_KEY)
    body = memoryview(data)[8 + size :]
    return {name: _member(name, told, body) for name, told in header.items()}, told


def _member(name: str, told: Any, body: Any) -> Any:
    begin, end = told["data_offsets"]
    tag = told["dtype"]
    if tag == "BF16":
        return _as_kind(np.frombuffer(body[begin:end], "<u2").copy(), "bfloat16").reshape(
            told["shape"]
        )
    if tag not in _TAGS:
        raise ValueError(f"load(): {name} has the dtype {tag}, which NumPy has not")
    kind = np.dtype(_TAGS[tag])
    flat = np.frombuffer(body[begin:end], kind.newbyteorder("<")).astype(kind)
    return flat.reshape(told["shape"])


_PICKLED = (
    "load(): this file holds a pickle, as PyTorch's save writes them, and a pickle can "
    "execute code. With PyTorch, write the tensors by safetensors or numpy.savez."
)


def _read_npz(data: bytes) -> tuple[dict[str, Any], Any]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = archive.namelist()
        if any(name.endswith(".pkl") for name in names):
            raise ValueError(_PICKLED)
        arrays = {}
        for name in names:
            with archive.open(name) as member:
                array = np.lib.format.read_array(member, allow_pickle=False)
            arrays[name.removesuffix(".npy")] = array
    told = arrays.pop(_KEY, None)
    return arrays, None if told is None else str(told)
