# SPDX-License-Identifier: GPL-2.0
"""Names and layouts of the device interface, read from include/ornic, so that the headers stay their only source.

c.ORNIC_REG_MAGIC is a number; unpack("ornic_cq_create_cmd", bytes) is a dict with the fields of a structure, pack() the
opposite, offset("ornic_eqe.type") the offset of a field.
"""
import os
import re
import struct
import types

HEADERS = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "include", "ornic")
FILES = ("types", "ring", "regs", "admin", "eq", "cq", "pd", "mr", "dm", "qp", "srq", "identify", "port", "stats", "steer", "wqe")
CODES = {"__u8": "B", "__le16": "H", "__le32": "I", "__le64": "Q", "__be16": "2s", "__be32": "4s", "__be64": "8s", "char": "c"}
SUFFIX = re.compile(r"\b(0x[0-9a-fA-F]+|\d+)(?:u|ull)\b")

structures = {}
_known = {"ORNIC_OP": lambda kind, verb: kind << 8 | verb, "ORNIC_SYN": lambda kind, detail: kind << 16 | detail}


def _evaluate(text):
    try:
        return eval(SUFFIX.sub(r"\1", text), {"__builtins__": {}}, _known)  # pylint: disable=eval-used
    except (NameError, SyntaxError):
        return None                     # a macro of C, not a number


def _read(text):
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S).replace("\\\n", " ")
    for name, value in re.findall(r"^#define\s+(ORNIC_\w+)[ \t]+(\S.*)$", text, re.M):
        if (number := _evaluate(value)) is not None:
            _known[name] = number
    for name, value in re.findall(r"^\s+(ORNIC_\w+)\s*=\s*(\w+\([^)]*\)|[^,]+),", text, re.M):
        _known[name] = _evaluate(value)
    for name, body in re.findall(r"^struct (\w+) \{(.*?)^\};", text, re.M | re.S):
        body = re.sub(r"union \{\s*(.*?;).*?\};", r"\1", body, flags=re.S)  # the first name of a union represents it
        structures[name] = [(kind, field, _evaluate(count) if count else 0) for kind, field, count in
                            re.findall(r"^\s*(?:struct )?(\w+) (\w+)(?:\[(\w+)\])?;", body, re.M)]


for _name in FILES:
    with open(os.path.join(HEADERS, _name + ".h"), encoding="utf-8") as _file:
        _read(_file.read())
c = types.SimpleNamespace(**_known)


def _fields(name, base=0):
    """Yield offset, struct code and dotted path of every plain field; there is no padding (the headers assert that)."""
    for kind, field, count in structures[name]:
        if kind in structures:
            for at, code, path in _fields(kind, base):
                yield at, code, field + "." + path
            base += size(kind)
            continue
        code = "%ds" % (count * struct.calcsize(CODES[kind])) if count else CODES[kind]
        yield base, code, field
        base += struct.calcsize(code)


def size(name):
    """Return the size of a structure in bytes."""
    return sum(size(kind) if kind in structures else struct.calcsize(CODES[kind]) * (count or 1)
               for kind, _, count in structures[name])


def offset(path):
    """Return the offset of "structure.field"."""
    name, _, field = path.partition(".")
    return next(at for at, _, found in _fields(name) if found == field)


def unpack(name, data):
    """Return the fields of a structure by dotted path; fields beyond the end of the data read as zero."""
    data = bytes(data).ljust(size(name), b"\0")
    return {path: struct.unpack_from("<" + code, data, at)[0] for at, code, path in _fields(name)}


def pack(name, fields):
    """Return a structure with these fields, by dotted path; the others are zero."""
    data = bytearray(size(name))
    for at, code, path in _fields(name):
        if path in fields:
            struct.pack_into("<" + code, data, at, fields[path])
    return bytes(data)


def name_of(prefix, value):
    """Return the name of a value: ORNIC_OP_NOP for ("ORNIC_OP_", 1)."""
    return next((name for name, known in _known.items() if name.startswith(prefix) and known == value), hex(value))
