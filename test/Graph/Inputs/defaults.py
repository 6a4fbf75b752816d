"""Compares what Ops.def says of attributes that an ONNX node leaves out with the schemas of the onnx package, which it
asks for the newest opset that has the operator."""

import re
import sys

import numpy
import onnx

TYPES = {"INT": "int", "FLOAT": "float", "STRING": "string", "INTS": "ints", "FLOATS": "floats", "STRINGS": "strings",
         "TENSOR": "constant"}
# Attributes that Graph has in another form: element types by name.
OTHER = {("BitCast", "to"), ("Cast", "to"), ("EyeLike", "dtype"), ("HannWindow", "output_datatype"),
         ("HammingWindow", "output_datatype"), ("BlackmanWindow", "output_datatype")}
# What only Graph has.
OWN = {("Softmax", "zero_masked"), ("RoiAlign", "half_pixel"), ("Pad", "pads"), ("Slice", "starts"), ("Slice", "ends"),
       ("Slice", "axes"), ("Slice", "steps"), ("Squeeze", "axes"), ("Unsqueeze", "axes")}

text = open(sys.argv[1]).read()
problems, compared = [], 0
for row in re.findall(r"^FUSEC_OP\((.*?)\)(?: //[^\n]*)?$", text, re.MULTILINE | re.DOTALL):
    op = row.split(",")[0]
    words = "".join(re.findall(r'"([^"]*)"', row)).split()
    if not onnx.defs.has(op):
        continue
    schema = onnx.defs.get_schema(op)
    for word in words:
        name, form = word.split(":", 1)
        kind, _, value = form.partition("=")
        kind = re.sub(r"\(.*\)|\?", "", kind)
        given = schema.attributes.get(name)
        if given is None:
            if (op, name) not in OWN and not (op.startswith("Reduce") and name == "axes"):
                problems.append(f"{op} has no attribute {name}")
            continue
        if (op, name) in OTHER:
            continue
        if TYPES[given.type.name] != kind:
            problems.append(f"{op}.{name} is {given.type.name} in ONNX, {kind} here")
        default = onnx.helper.get_attribute_value(given.default_value) if given.default_value.name else None
        if isinstance(default, bytes):
            default = default.decode()
        if value:
            mine = {"int": int, "float": numpy.float32, "string": str}[kind](value)
            theirs = numpy.float32(default) if kind == "float" and default is not None else default
            if default is not None and mine != theirs:
                problems.append(f"{op}.{name} is {theirs} in ONNX, {mine} here")
            compared += default is not None
        elif default is not None and kind in ("int", "float", "string"):
            problems.append(f"{op}.{name} is {default} in ONNX, without a value here")
print(*problems, f"{compared} defaults compared", sep="\n")
sys.exit(bool(problems))
