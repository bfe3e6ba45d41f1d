"""Reads nvdisasm's listing of a cubin: what the instructions of each kernel must be, and what must not be among them."""
import re
import subprocess

# Names of kernels with accesses of 16 bytes: their number of elements is among the template's arguments.
ROWS = r"^(norm_rows\w*|activate\w*|gather_rows\w*|add|adamw|shape_logits)<(.*, )?(4|8)(, (float|bf16))*>$"
HEADS = r"^(prepare_\w*heads\w*)<.*, \d, (4|8), \d+, (float|bf16)>$"

# (kernels' names, an instruction that each must have, why)
CLAIMS = [
    (r"^attend\w*<TensorCoreTile", r"HMMA\.16816\.F32\.BF16", "scores and outputs are products of tensor cores"),
    (r"^attend\w*<TensorCoreTile", r"LDSM\.16\.M88\.4", "operands come from shared memory by ldmatrix"),
    (r"^attend\w*<TensorCoreTile", r"LDSM\.16\.MT88\.4", "operands come transposed by ldmatrix.trans"),
    (r"^attend\w*<(TensorCore|Float)Tile", r"LDGSTS\.E\.BYPASS\.128", "tiles come by asynchronous copies of 16 bytes"),
    (rf"{ROWS}|{HEADS}|^cross_entropy<", r"LDG\.E\.128", "it reads 16 bytes at a time"),
    (rf"{ROWS}|{HEADS}|^cross_entropy<", r"STG\.E\.128", "it writes 16 bytes at a time"),
    (r"^(all_heads_gradient\w*<.*, \d, (4|8), \d+, (float|bf16)>|sum_squares<4>)$", r"LDG\.E\.128", "it reads 16 bytes at a time"),
]
DENIED = [
    (r"^(LDL|STL)\b", "local memory"),
    (r"^(ATOMG?|RED)\b", "an atomic on global memory: sums would depend on the order of blocks"),
]
DENIED_IN_LOOPS = [(r"^CALL.*_(div|rem)_[su]64", "a 64-bit division in a loop")]


def functions(listing):
    """{mangled name: [(label, instruction)]}; a line of the listing is one or the other, the other is None."""
    lines = None
    result = {}
    for line in listing.splitlines():
        if found := re.match(r"\.text\.(\S+):", line):
            lines = result.setdefault(found.group(1), [])
        elif lines is None:
            continue
        elif found := re.match(r"\.(L_\S+):", line):
            lines.append((found.group(1), None))
        elif found := re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?(.*?)\s*;", line):
            lines.append((None, found.group(1)))
    return result


def loops(lines):
    """Ranges of lines between a label and a branch back to it."""
    places = {label: i for i, (label, _) in enumerate(lines) if label}
    for i, (_, instruction) in enumerate(lines):
        target = re.match(r"BRA.*`\(\.(L_[^)]+)\)", instruction or "")
        if target and places.get(target.group(1), i) < i - 1:  # the last line is a branch to itself
            yield range(places[target.group(1)], i)


def complaints(name, lines):
    instructions = [instruction for _, instruction in lines if instruction]
    for kernels, wanted, why in CLAIMS:
        if re.search(kernels, name) and not any(re.match(wanted, i) for i in instructions):
            yield f"{name}: no {wanted} although {why}"
    for pattern, what in DENIED:
        if any(re.match(pattern, i) for i in instructions):
            yield f"{name}: {what}"
    inside = {i for loop in loops(lines) for i in loop}
    for pattern, what in DENIED_IN_LOOPS:
        if any(re.match(pattern, lines[i][1] or "") for i in inside):
            yield f"{name}: {what}"


def check(nvdisasm, cubin, readable):
    """(number of kernels, how many claims were checked, complaints). readable: names from mangled ones."""
    listing = subprocess.run([nvdisasm, "-c", cubin], stdout=subprocess.PIPE, text=True, check=True).stdout
    found = functions(listing)
    names = readable(found)
    checked = sum(bool(re.search(kernels, name)) for name in names for kernels, _, _ in CLAIMS)
    return len(found), checked, [text for name, lines in zip(names, found.values()) for text in complaints(name, lines)]
