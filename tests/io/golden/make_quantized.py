"""Writes quantized.gguf, quantized.safetensors and plain.safetensors: small files made by other software.

    python3 -m venv venv && venv/bin/pip install gguf==0.19.0 safetensors==0.6.2 numpy==2.4.6
    venv/bin/python make_quantized.py [seed]

quantized.gguf (gguf-py): a value of each metadata type, and one tensor of each readable type, of random bytes.
quantized.safetensors: what gguf-py de-quantises them to. plain.safetensors: the plain types, beside their float values.
The values of the metadata do not depend on the seed: containers_test.cpp knows them.
"""
import pathlib
import sys

import gguf
import numpy as np
import safetensors
from gguf import GGMLQuantizationType as Type
from gguf import GGUFValueType as Value

FOLDER = pathlib.Path(__file__).parent
ROWS, WIDTH = 3, 64  # two blocks of 32 per row


def random_blocks(random, type):
    """[ROWS, bytes per row] random bytes whose f16 fields are finite; the first block's are 0 and the smallest subnormal."""
    elements, size = gguf.GGML_QUANT_SIZES[type]
    blocks = random.integers(0, 256, (ROWS * WIDTH // elements, size), dtype=np.uint8)
    scales = {Type.Q8_0: 1, Type.Q4_0: 1, Type.Q4_1: 2}.get(type, 0)
    if type == Type.F16:
        blocks = finite_halves(random, len(blocks)).view(np.uint8).reshape(-1, 2)
    elif type == Type.BF16:
        blocks = (random.standard_normal(len(blocks)).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)
    elif type == Type.F32:
        blocks = random.standard_normal(len(blocks)).astype(np.float32).view(np.uint8)
    for i in range(scales):
        halves = finite_halves(random, len(blocks))
        halves[0] = (0x0000, 0x0001)[i]
        halves[1] = (0x0001, 0x8000)[i]
        blocks[:, 2 * i : 2 * i + 2] = halves.view(np.uint8).reshape(-1, 2)
    return blocks.reshape(ROWS, -1)


def finite_halves(random, count):
    """uint16 patterns of binary16 numbers of all magnitudes, subnormal ones included."""
    bits = random.integers(0, 0x7C00, count, dtype=np.uint16)
    return bits | (random.integers(0, 2, count, dtype=np.uint16) << 15)


def write_quantized(random):
    writer = gguf.GGUFWriter(FOLDER / "quantized.gguf", "test")
    writer.add_key_value("test.uint8", 200, Value.UINT8)
    writer.add_key_value("test.int8", -100, Value.INT8)
    writer.add_key_value("test.uint16", 60000, Value.UINT16)
    writer.add_key_value("test.int16", -30000, Value.INT16)
    writer.add_key_value("test.uint32", 4000000000, Value.UINT32)
    writer.add_key_value("test.int32", -2000000000, Value.INT32)
    writer.add_key_value("test.uint64", 2**63 + 1, Value.UINT64)
    writer.add_key_value("test.int64", -(2**62), Value.INT64)
    writer.add_key_value("test.float32", 1e-5, Value.FLOAT32)
    writer.add_key_value("test.float64", 1e-5, Value.FLOAT64)
    writer.add_key_value("test.bool", True, Value.BOOL)
    writer.add_key_value("test.string", "gr\u00fc\u00dfe", Value.STRING)
    writer.add_key_value("test.empty", "", Value.STRING)
    writer.add_key_value("test.strings", ["a", "", "\u0120the"], Value.ARRAY)
    writer.add_key_value("test.numbers", [1, -2, 3], Value.ARRAY)
    writer.add_key_value("test.floats", [0.5, -0.25], Value.ARRAY)
    writer.add_key_value("test.flags", [True, False, True], Value.ARRAY)
    expected = {}
    for type in (Type.F32, Type.F16, Type.BF16, Type.Q8_0, Type.Q4_0, Type.Q4_1):
        blocks = random_blocks(random, type)
        numbers = gguf.dequantize(blocks, type).astype(np.float32).reshape(ROWS, WIDTH)
        writer.add_tensor(type.name, blocks, raw_shape=blocks.shape, raw_dtype=type)
        expected[type.name] = entry("float32", numbers)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    safetensors.serialize_file(expected, FOLDER / "quantized.safetensors")


def write_plain(random):
    """Each type beside its value as float: doubles that round, overflow and vanish; halves of all magnitudes."""
    doubles = np.concatenate([random.standard_normal(26) * 10.0 ** random.integers(-50, 50, 26),
                              [0.0, -0.0, 1e300, -1e300, np.inf, 1e-46]]).reshape(2, 16)
    halves = finite_halves(random, 33).reshape(3, 11)
    brains = (random.standard_normal(7).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    with np.errstate(over="ignore"):
        tensors = {
            "F64": entry("float64", doubles),
            "F64.float": entry("float32", doubles.astype(np.float32)),
            "F16": entry("float16", halves),
            "F16.float": entry("float32", halves.view(np.float16).astype(np.float32)),
            "BF16": entry("bfloat16", brains),
            "BF16.float": entry("float32", (brains.astype(np.uint32) << 16).view(np.float32)),
            "scalar": entry("float32", np.array(2.5, np.float32)),
            "nothing": entry("float32", np.zeros((0, 3), np.float32)),
            "I64": entry("int64", np.arange(3)),
            "BOOL": entry("bool", np.array([True])),
        }
    safetensors.serialize_file(tensors, FOLDER / "plain.safetensors", {"made by": "safetensors"})


def entry(dtype, array):
    return {"dtype": dtype, "shape": list(array.shape), "data": np.ascontiguousarray(array).tobytes()}


random = np.random.default_rng(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
write_quantized(random)
write_plain(random)
