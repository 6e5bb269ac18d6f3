"""Safetensors files, most of them invalid: mutations of valid ones, the same for the same seed."""

import json
import random

ELEMENT_SIZES = {
    "BOOL": 1, "U8": 1, "I8": 1, "I16": 2, "U16": 2, "F16": 2, "BF16": 2, "I32": 4, "U32": 4, "F32": 4, "C64": 8, "F64": 8,
    "I64": 8, "U64": 8,
}  # fmt: skip
# Types of the reference implementation that Imprint does not read.
OTHER_TYPES = {
    "F4": 0.5, "F6_E2M3": 0.75, "F6_E3M2": 0.75, "F8_E5M2": 1, "F8_E4M3": 1, "F8_E8M0": 1, "F8_E4M3FNUZ": 1, "F8_E5M2FNUZ": 1,
}  # fmt: skip
NUMBERS = [
    "0", "1", "-1", "-0", "00", "01", "1.0", "0.0", "1e0", "1E2", "0e0", "1.", ".5", "+1", "0x1", "NaN", "Infinity", "null",
    "true", '"1"', "[]", "{}", "4294967296", "4611686018427387904", "9223372036854775807", "9223372036854775808",
    "18446744073709551615", "18446744073709551616", "1e400", "1152921504606846975",
]  # fmt: skip
NAMES = [
    "", "a", "é", "e\u0301", "K", "\u212a", "\u0000", "\u0001", "😀", "__metadata__", "weight\n", '"', "\\", "/", "\u2028", "\x7f",
    "dtype",
]  # fmt: skip
TEXTS = [
    r"\u0041", r"\ud83d\ude00", r"\ud83d", r"\ude00", r"\ud83d\u0041", r"\u00", r"\x41", r"\u+041", r"\/", r"\b\f\n\r\t",
    r"\u0000", "\t", "\x1f", "\x7f",
]  # fmt: skip
TOKENS = [
    "{", "}", "[", "]", ",", ":", '"', "\\", " ", "\n", "\t", "\r", "\f", "\v", "\0",
    "\u00a0", "\ufeff", "-", "0", "e", "//", "null", "true", "NaN",
]  # fmt: skip


class Raw(str):
    """JSON text that is written as it is."""


class Pairs(list):
    """The members of an object, whose keys can repeat."""


def encode(value, stream):
    """Returns the JSON of a value, with random white space and escapes."""
    space = stream.choice(["", "", "", " ", "\n", "\t", "\r", "  "])
    if isinstance(value, Raw):
        return value
    if isinstance(value, Pairs):
        members = [encode(key, stream) + space + ":" + space + encode(inner, stream) for key, inner in value]
        return "{" + space + ("," + space).join(members) + space + "}"
    if isinstance(value, list):
        return "[" + space + ("," + space).join(encode(inner, stream) for inner in value) + space + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=stream.random() < 0.5)
    return json.dumps(value)


class File:
    """A file in parts, which mutations change before it becomes bytes."""

    def __init__(self, stream):
        """Creates a valid file."""
        names = stream.sample(["a", "b", "conv.weight", "conv.bias", "é", "", "x/y", "n" * 40], stream.randrange(5))
        self.tensors = []
        self.data = b""
        for name in names:
            element_type = stream.choice(list(ELEMENT_SIZES))
            shape = [stream.choice([0, 1, 1, 2, 2, 3, 4]) for _ in range(stream.randrange(4))]
            size = ELEMENT_SIZES[element_type]
            for length in shape:
                size *= length
            offsets = [len(self.data), len(self.data) + size]
            self.data += stream.randbytes(size)
            self.tensors.append([name, Pairs([["dtype", element_type], ["shape", shape], ["data_offsets", offsets]])])
        stream.shuffle(self.tensors)
        self.members = Pairs(self.tensors)
        if stream.random() < 0.6:
            metadata = Pairs([[f"key{index}", stream.choice(["", "value", "é😀", "1"])] for index in range(stream.randrange(4))])
            self.members.insert(stream.randrange(len(self.members) + 1), ["__metadata__", metadata])
        self.padding = " " * stream.choice([0, 0, 1, 7, 8])
        self.prefix = ""
        self.length_change = 0
        self.length = None

    def bytes(self, stream):
        header = (self.prefix + encode(self.members, stream) + self.padding).encode("utf-8", "surrogatepass")
        length = len(header) + self.length_change if self.length is None else self.length
        return (length % 2**64).to_bytes(8, "little") + header + self.data


def tensor(file, stream):
    """Returns the fields of a random tensor, or an object that no file contains if there is none."""
    return stream.choice(file.tensors)[1] if file.tensors else Pairs([["dtype", "F32"], ["shape", [1]], ["data_offsets", [0, 4]]])


def field(fields, name):
    """Returns the pair of a field whose value is still a list; None if there is none."""
    return next((pair for pair in fields if pair[0] == name and type(pair[1]) is list), None)


# Mutations of the structure. Each changes a file in place.


def duplicate_key(file, stream):
    members = stream.choice([file.members, tensor(file, stream), metadata(file, stream)])
    if members:
        members.insert(stream.randrange(len(members) + 1), list(stream.choice(members)))


def rename(file, stream):
    members = stream.choice([file.members, file.members, tensor(file, stream), metadata(file, stream)])
    if members:
        stream.choice(members)[0] = stream.choice(NAMES) if stream.random() < 0.7 else Raw('"' + stream.choice(TEXTS) + '"')


def similar_names(file, stream):
    """Names that are equal only after Unicode normalization, or only after escapes are read."""
    first, second = stream.choice([("é", "e\u0301"), ("K", "\u212a"), ("a", Raw(r'"\u0061"')), ("Å", "\u212b"), ("ê", "e\u0302")])
    empty = Pairs([["dtype", "U8"], ["shape", [0]], ["data_offsets", [len(file.data)] * 2]])
    if stream.random() < 0.5:
        file.members += [[first, empty], [second, Pairs(empty)]]
    else:
        metadata(file, stream).extend([[first, "1"], [second, "2"]])


def metadata(file, stream):
    found = next((value for key, value in file.members if key == "__metadata__" and isinstance(value, Pairs)), None)
    if found is None:
        found = Pairs()
        file.members.append(["__metadata__", found])
    return found


def change_metadata(file, stream):
    value = stream.choice([
        1, None, True, [], ["a"], Pairs(), Pairs([["a", "b"]]), Raw("1e5"), Raw("NaN"), Raw('"\\ud83d"'), Raw('"\\u0000"'), "",
    ])  # fmt: skip
    if stream.random() < 0.3:
        metadata(file, stream)
        next(pair for pair in file.members if pair[0] == "__metadata__")[1] = value
    else:
        metadata(file, stream).append(["k", value])


def change_offset(file, stream):
    pair = field(tensor(file, stream), "data_offsets")
    if pair and pair[1]:
        index = stream.randrange(len(pair[1]))
        old = pair[1][index]
        change = stream.choice([-8, -4, -1, 1, 4, 8, 2**31, 2**62, 2**63, 2**64])
        pair[1][index] = old + change if isinstance(old, int) else old


def shift_offsets(file, stream):
    """An overlap or a hole before a tensor."""
    pair = field(tensor(file, stream), "data_offsets")
    if pair:
        change = stream.choice([-4, -1, 1, 4, 8])
        pair[1][:] = [offset + change if isinstance(offset, int) else offset for offset in pair[1]]


def swap_offsets(file, stream):
    first, second = (field(tensor(file, stream), "data_offsets") for _ in range(2))
    if first and second:
        first[1], second[1] = second[1], first[1]


def number(file, stream):
    """A number that is not a plain integer, or an extreme one."""
    pair = field(tensor(file, stream), stream.choice(["shape", "data_offsets"]))
    if pair:
        value = Raw(stream.choice(NUMBERS))
        if pair[1] and stream.random() < 0.8:
            index = stream.randrange(len(pair[1]))
            plain = pair[1][index]
            # The same number in another notation.
            others = ["-{}", "+{}", "0{}", "{}.0", "{}e0", "{}E+0", '"{}"', "[{}]", " {} "]
            pair[1][index] = Raw(stream.choice(others).format(plain)) if stream.random() < 0.5 else value
        else:
            pair[1].insert(stream.randrange(len(pair[1]) + 1), value)


def change_shape(file, stream):
    pair = field(tensor(file, stream), "shape")
    if pair:
        pair[1] = stream.choice([
            [], [0], [1], pair[1] + [1], [1] * 64 + pair[1], [1] * 63 + pair[1], pair[1][::-1], [2**62, 4, 0], [0, 2**62, 4],
            [2**61, 0], [2**63, 0], [2**62, 3, 0], [2**62 + 1], [2**32, 2**32], Raw("[1,]"), Raw("[,1]"), None, 1, Pairs(),
        ])  # fmt: skip


def empty_huge(file, stream):
    """An empty tensor of huge sizes."""
    shape = stream.choice([[2**61, 0], [0, 2**62, 4], [2**62, 4, 0], [2**63, 0], [2**62, 3, 0], [0, 2**63 - 1], [2**63 - 1, 0]])
    fields = Pairs([["dtype", stream.choice(list(ELEMENT_SIZES))], ["shape", shape], ["data_offsets", [len(file.data)] * 2]])
    file.members.append(["huge", fields])


def change_type(file, stream):
    fields = tensor(file, stream)
    pair = next((pair for pair in fields if pair[0] == "dtype"), None)
    if pair:
        pair[1] = stream.choice([
            *ELEMENT_SIZES, *OTHER_TYPES, "f32", "F32 ", "F128", "", "I4", "float32", 32, None, Raw(r'"\u004632"'), Raw('{"F32":null}'), ["F32"],
        ])  # fmt: skip


def other_type(file, stream):
    """A tensor of a type that only the reference implementation reads, or of the same size and another type."""
    fields = tensor(file, stream)
    name = next((pair for pair in fields if pair[0] == "dtype"), None)
    if name and isinstance(name[1], str):
        size = ELEMENT_SIZES.get(name[1], 1)
        name[1] = stream.choice([other for other, bytes in {**ELEMENT_SIZES, **OTHER_TYPES}.items() if bytes == size])


def remove_member(file, stream):
    members = stream.choice([file.members, tensor(file, stream)])
    if members:
        members.pop(stream.randrange(len(members)))


def add_field(file, stream):
    value = stream.choice([1, "x", [], Pairs(), None, Raw("[" * 200 + "]" * 200), Raw("1e400"), Raw('"\\ud83d"')])
    tensor(file, stream).append([stream.choice(["strides", "Dtype", "", "shape "]), value])


def change_tensor(file, stream):
    if file.tensors:
        entry = stream.choice(file.tensors)
        values = [inner for _, inner in entry[1]] if isinstance(entry[1], Pairs) else []
        entry[1] = stream.choice([None, 1, "F32", [], values, [Pairs(entry[1])], Pairs()])
        file.tensors = [other for other in file.tensors if other is not entry]


def nest(file, stream):
    depth = stream.choice([2, 100, 127, 128, 129, 1000, 20000])
    text = stream.choice(["[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth, "[" * depth])
    stream.choice([file.members, metadata(file, stream), tensor(file, stream)]).append(["deep", Raw(text)])


def before_header(file, stream):
    file.prefix = stream.choice([" ", "\n", "\t", "\ufeff", "[", "\0", "//", "{}", "x"])


def after_header(file, stream):
    file.padding = stream.choice([" ", "\n", "\t\r\n ", "\0", "\0" * 8, "{}", "x", "}", ",", "\u00a0", "\f"]) + file.padding


def header_length(file, stream):
    file.length_change = stream.choice([-2, -1, 1, 2, 8])


def huge_length(file, stream):
    file.length = stream.choice([0, 1, 2, 7, 8, 100_000_000, 100_000_001, 2**31, 2**32, 2**62, 2**63 - 1, 2**63, 2**64 - 9, 2**64 - 8, 2**64 - 1])


def change_data(file, stream):
    file.data = stream.choice([file.data + b"\0", file.data + b"\0" * 8, file.data[:-1], b"", file.data * 2])


def order(file, stream):
    stream.shuffle(file.members)
    for _, fields in file.members:
        if isinstance(fields, Pairs):
            stream.shuffle(fields)


STRUCTURE = [
    duplicate_key, rename, similar_names, change_metadata, change_offset, shift_offsets, swap_offsets, number, number, change_shape,
    empty_huge, change_type, other_type, remove_member, add_field, change_tensor, nest, before_header, after_header,
    header_length, huge_length, change_data, order,
]  # fmt: skip


def change_bytes(content, stream):
    """Changes bytes: bit flips, truncations, repeated parts and tokens of JSON."""
    content = bytearray(content)
    for _ in range(stream.choice([1, 1, 1, 2, 4])):
        if not content:
            break
        # Most often within the header.
        start = stream.randrange(min(len(content), stream.choice([8, 40, 200, len(content)])))
        end = min(start + 1 + stream.randrange(16), len(content))
        choice = stream.randrange(7)
        if choice == 0:
            content[start] ^= 1 << stream.randrange(8)
        elif choice == 1:
            content[start] = stream.randrange(256)
        elif choice == 2:
            del content[start:end]
        elif choice == 3:
            content[start:start] = content[start:end]
        elif choice == 4:
            del content[start:]
        elif choice == 5:
            content += stream.randbytes(stream.randrange(1, 9))
        else:
            token = stream.choice(TOKENS).encode()
            # The same length, so that the header still ends where it should.
            content[start : start + len(token)] = token
    return bytes(content)


def mutant(seed, index):
    """Returns the bytes of a file, and the names of its mutations."""
    stream = random.Random(f"{seed} {index}")
    file = File(stream)
    names = []
    for _ in range(stream.choice([0, 1, 1, 1, 1, 1, 2, 2, 3])):
        mutation = stream.choice(STRUCTURE)
        mutation(file, stream)
        names.append(mutation.__name__)
    content = file.bytes(stream)
    if stream.random() < 0.25:
        content = change_bytes(content, stream)
        names.append("change_bytes")
    return content, names
