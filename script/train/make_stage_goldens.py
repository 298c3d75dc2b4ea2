"""Writes tests/golden/stages.json: every stage of the post-op chain on rows of integers.

The stages are computed from their formulas in exact fractions and unbounded integers. No line is
shared with hw/. Sources: the polynomials of GELU, exponential and LayerNorm are I-BERT's (arXiv
2101.01321), the rotation is RoFormer's (arXiv 2104.09864). Widths are those of the page of the
post-op pipeline.
"""
import argparse
import json
import math
import random
from fractions import Fraction

COLUMNS = 12
CASES = 3  # of every stage and kind of operand
LOWEST, HIGHEST = -2**31, 2**31 - 1
TENSORS = {"s8": (-128, 127), "u8": (0, 255), "s16": (-2**15, 2**15 - 1), "u16": (0, 2**16 - 1),
           "s32": (LOWEST, HIGHEST)}
ROUNDINGS = ["half_up", "half_even", "floor"]
ANY = "channel row tensor saved immediate"
OPERANDS = {"add": ANY, "sub": ANY, "mul": ANY, "mask": "channel row tensor immediate",
            "requantise": "immediate channel", "layer_norm": "channel",
            "layer_norm_apply": "channel", "rms_norm_apply": "channel", "rope": "tensor",
            "divide_row_sum": "row", "quantise_row": "row", "clamp": "immediate", "relu": "immediate",
            "gelu": "immediate", "silu": "immediate", "exp": "immediate", "softmax": "immediate",
            "tanh": "immediate", "divide": ANY}
LIMITS = {"add": 2, "sub": 2, "mul": 1, "requantise": 2, "clamp": 0, "gelu": 5, "silu": 5,
          "layer_norm": 2, "layer_norm_apply": 2, "rms_norm_apply": 2, "rope": 1, "tanh": 5,
          "divide": 1}  # place of lo
FRACTION_BITS = [8, 8, 10, 4]


def clamp(x, lo, hi):
    return min(max(x, lo), hi)


def signed(x, bits):
    return clamp(x, -2**(bits - 1), 2**(bits - 1) - 1)


def rounded(x, mode):
    """A fraction to an integer."""
    if mode == "half_even":
        return round(x)
    return math.floor(x + Fraction(1, 2) if mode == "half_up" else x)


def scaled(x, multiplier, shift, mode="half_up"):
    return rounded(Fraction(x * multiplier, 2**shift), mode)


def exponential(q, fraction_bits):
    """exp(q / 2^fraction_bits) for q <= 0, over 0.3585 / 4^fraction_bits."""
    assert q <= 0
    step = 2**fraction_bits
    ln2, b, c = (math.floor(math.log(2) * step), math.floor(1.353 * step),
                 math.floor(0.344 / 0.3585 * step**2))
    halvings, p = divmod(-max(q, -2**15), ln2)
    return ((b - p)**2 + c) // 2**min(halvings, 31)


def gelu(x, imm):
    b, c, one, multiplier, shift = imm[:5]
    x = signed(x, 16)
    erf = (min(abs(x), -b) + b)**2 + c
    return scaled(x * (one + (erf if x >= 0 else -erf)), multiplier, shift)


def silu(x, imm):
    multiplier, shift, fraction_bits, out_multiplier, out_shift = imm[:5]
    x = signed(x, 16)
    e = exponential(-scaled(abs(x), multiplier, shift), fraction_bits)
    one = exponential(0, fraction_bits)
    sigmoid = math.floor(Fraction(one if x >= 0 else e, one + e) * 2**15)
    return scaled(x * sigmoid, out_multiplier, out_shift)


def tanh(x, imm):
    multiplier, shift, fraction_bits, out_multiplier, out_shift = imm[:5]
    x = signed(x, 16)
    e = exponential(-scaled(abs(x), multiplier, shift), fraction_bits)
    one = exponential(0, fraction_bits)
    quotient = math.floor(Fraction(one - e, one + e) * 2**15)
    return scaled(quotient if x >= 0 else -quotient, out_multiplier, out_shift)


def softmax(case):
    """Codes of the valid columns, and the row sum of the deferred mode."""
    mode, multiplier, shift, fraction_bits, out_multiplier, out_shift, bits = case["imm"]
    scores = case["in"][:case["valid_cols"]]
    powers = [exponential(scaled(x - max(scores), multiplier, shift), fraction_bits)
              for x in scores]
    largest = 2**bits - 1
    if mode == 0:
        codes = [clamp(scaled(e, out_multiplier, out_shift), 0, largest) for e in powers]
        case["left"] = [max(sum(codes), 1)]
    else:
        reciprocal = 2**32 // sum(powers)
        codes = [clamp(scaled(e * reciprocal, 1, 32 - bits, "floor" if mode == 1 else "half_up"),
                       0, largest) for e in powers]
    return codes + [0] * (COLUMNS - len(codes))


def quotient(x, y, imm, mode):
    """By zero: as far as the limits go."""
    if y == 0:
        return (x > 0) * HIGHEST + (x < 0) * LOWEST
    return rounded(Fraction(x * 2**imm[0], y), mode)


def norm(case):
    op, imm = case["stage"], case["imm"]
    x = [signed(value, 24) for value in case["in"]]
    if op == "layer_norm":
        mean = rounded(Fraction(sum(x), len(x)), "half_up")
        squares = sum((value - mean)**2 for value in x)
    else:
        words = case["statistics"]
        mean, squares = 0, words[2] + (words[3] << 32)
        if op == "layer_norm_apply":
            total = words[0] + (words[1] << 32)
            total = signed(total - (total >> 63 << 64), 40)
            mean = signed(rounded(Fraction(total, imm[4]), "half_up"), 24)
            squares = (squares - 2 * mean * total + imm[4] * mean**2) % 2**64
            squares = squares if squares < 2**63 else 0
    reciprocal = 2**31 // max(math.isqrt(squares), 1)
    multipliers, addends = (case["parameters"] + [[0] * COLUMNS])[:2]
    out = []
    for value, multiplier, addend in zip(x, multipliers, addends):
        normal = (value - mean) * reciprocal // 2**(31 - imm[0])
        normal = (normal + 2**31) % 2**32 - 2**31
        out.append(scaled(normal * multiplier + addend, 1, imm[1]))
    return out


def rope(case):
    out = []
    for i in range(0, COLUMNS, 2):
        even, odd = (signed(x, 24) for x in case["in"][i:i + 2])
        cosine, sine = case["y"][i:i + 2]
        out += [scaled(even * cosine - odd * sine, 1, case["imm"][0], case["rounding"]),
                scaled(even * sine + odd * cosine, 1, case["imm"][0], case["rounding"])]
    return out


def operand(case, value):
    """y of every column; `value` is the place of the immediate."""
    kind = case["operand"]
    if kind == "channel":
        return case["parameters"][0]
    if kind == "row":
        word = case["statistics"][0]
        return [word - (word >> 31 << 32)] * COLUMNS
    if kind == "saved":
        return case["in"]
    return case["y"] if kind == "tensor" else [case["imm"][value]] * COLUMNS


def results(case):
    op, imm, x, mode = case["stage"], case["imm"], case["in"], case["rounding"]
    if op in ("add", "sub"):
        y = operand(case, 4)
        if imm[0] != 0:
            y = [clamp(scaled(value, imm[0], imm[1], mode), imm[2], imm[3]) for value in y]
        return [a + b if op == "add" else a - b for a, b in zip(x, y)]
    if op == "mul":
        return [scaled(a * b, 1, imm[0], mode) for a, b in zip(x, operand(case, 3))]
    if op == "divide":
        return [quotient(a, b, imm, mode) for a, b in zip(x, operand(case, 3))]
    if op == "mask":
        passes = operand(case, 0)
        if case["operand"] == "immediate":
            passes = [column < case["valid_cols"] for column in range(COLUMNS)]
        return [value if keep else imm[0] for value, keep in zip(x, passes)]
    if op == "requantise":
        if case["operand"] == "immediate":
            return [scaled(value, imm[0], imm[1], mode) for value in x]
        return [scaled(value, max(multiplier, -HIGHEST), shift % 64, mode)
                for value, multiplier, shift in zip(x, *case["parameters"])]
    if op == "exp":
        return [exponential(scaled(min(value, 0), imm[0], imm[1]), imm[2]) for value in x]
    if op == "divide_row_sum":
        reciprocal = 2**24 // max(case["statistics"][0], 1)
        return [scaled(value * reciprocal, 1, 16) for value in x]
    if op == "quantise_row":
        peak = max(case["statistics"][0], 1)
        shift = peak.bit_length() + 15
        factor = imm[0] * 2**shift // peak
        return [clamp(scaled(value * factor, 1, shift), -imm[0], imm[0]) for value in x]
    if op in ("softmax", "rope"):
        return {"softmax": softmax, "rope": rope}[op](case)
    if "norm" in op:
        return norm(case)
    return [{"clamp": lambda a: a, "relu": lambda a: max(a, 0), "gelu": lambda a: gelu(a, imm),
             "silu": lambda a: silu(a, imm), "tanh": lambda a: tanh(a, imm)}[op](value) for value in x]


def leave(case):
    """The side output in the row statistics."""
    before, out = case.get("statistics", [0] * 4), case["out"]
    old = before if case["continues"] else [0] * 4
    if case["side"] == "row_max":
        highest = old[0] - (old[0] >> 31 << 32) if case["continues"] else LOWEST
        case["left"] = [max([highest] + out) % 2**32]
    if case["side"] == "row_peak":
        case["left"] = [max([old[0]] + [abs(x) for x in out])]
    if case["side"] == "row_sum":
        case["left"] = [(old[0] + sum(out)) % 2**32]
    if case["side"] == "sum_squares":
        inputs = [signed(x, 24) for x in out]
        total = old[0] + (old[1] << 32) + sum(inputs)
        squares = old[2] + (old[3] << 32) + sum(x * x for x in inputs)
        case["left"] = [word >> shift & 0xffffffff
                        for word in (total, squares) for shift in (0, 32)]


def compute(case):
    out = results(case)
    if case["stage"] in LIMITS and case["stage"] not in ("add", "sub"):
        lo = LIMITS[case["stage"]]
        out = [clamp(x, case["imm"][lo], case["imm"][lo + 1]) for x in out]
    case["out"] = [signed(x, 32) for x in out]
    leave(case)


class Draw:
    """Random operands of a case, extremes included."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def word(self, lo=LOWEST, hi=HIGHEST):
        length = self.random.randint(1, 32)
        word = self.random.choice([lo, hi, 0, -1, self.random.getrandbits(length)]
                                  + [self.random.getrandbits(length) - 2**(length - 1)] * 5)
        return clamp(word, lo, hi)

    def words(self, lo=LOWEST, hi=HIGHEST):
        return [self.word(lo, hi) for _ in range(COLUMNS)]

    def small(self, bits):
        return [self.random.randint(-2**(bits - 1), 2**(bits - 1) - 1) for _ in range(COLUMNS)]

    def limits(self):
        return self.random.choice([[-127, 127], [-2**15, 2**15 - 1], [-7, 90], [LOWEST, HIGHEST]])

    def factor(self, negative=True):
        """About 2^-8 to 2."""
        shift = self.random.randint(2, 30)
        multiplier = max(self.random.getrandbits(min(shift + 1, 31)), 1)
        return [-multiplier if negative and self.random.random() < 0.3 else multiplier, shift]

    def argument(self, in_bits, fraction_bits):
        """The factor that takes inputs of in_bits to arguments of at most 2 to 12."""
        shift = self.random.randint(12, 24)
        reach = self.random.uniform(2, 12) * 2**(fraction_bits + shift - in_bits + 1)
        return [round(reach), shift, fraction_bits]

    def immediates(self, op, kind, in_bits):
        bits = self.random.choice(FRACTION_BITS)
        value = [self.word()] if kind == "immediate" else [0]
        if op in ("add", "sub"):
            return self.random.choice([[0, 0], self.factor()]) + self.limits() + value
        if op == "mul":
            return [self.random.randint(0, 34)] + self.limits() + value
        if op == "divide":
            return ([self.random.randint(0, 31)] + self.limits()
                    + [value[0] or 1 if kind == "immediate" else 0])
        if op == "gelu":
            scale = 2**-self.random.randint(3, 12) / math.sqrt(2)
            unit = math.floor(-1 / (0.2888 * scale**2))
            factor = 0.2888 * scale**3 / 2 / (127 / 2**15)
            shift = 15 - math.frexp(factor)[1]
            return ([math.floor(-1.769 / scale), unit, unit, -round(factor * 2**shift), shift]
                    + self.limits())
        return {"requantise": lambda: (self.factor() if kind == "immediate" else [0, 0])
                + self.limits(),
                "clamp": self.limits, "mask": lambda: [self.word()],
                "exp": lambda: self.argument(in_bits, bits),
                "silu": lambda: self.argument(in_bits, bits)
                + [self.random.randint(2**14, 2**16), in_bits + 15 + 7] + self.limits(),
                "tanh": lambda: self.argument(in_bits, bits)
                + [self.random.randint(2**14, 2**16), self.random.choice([7, 15, 23])]
                + self.limits(),
                "softmax": lambda: [0] + self.argument(in_bits, bits)
                + [46858, 25 + 2 * (bits - 8), 8],
                "layer_norm": lambda: [15, self.random.randint(10, 30)] + self.limits(),
                "layer_norm_apply": lambda: [15, self.random.randint(10, 30)] + self.limits()
                + [self.random.randint(COLUMNS, 400)],
                "rms_norm_apply": lambda: [15, self.random.randint(10, 30)] + self.limits(),
                "quantise_row": lambda: [self.random.choice([1, 7, 127, 127, 2**15 - 1])],
                "rope": lambda: [self.random.randint(0, 20)] + self.limits(),
                }.get(op, lambda: [])()

    def row_statistics(self, case):
        """Of a row of which the case has a part, or any words."""
        count = 4 if case["stage"].endswith("_apply") or case["side"] == "sum_squares" else 1
        if case["stage"] == "divide_row_sum":
            return [self.random.choice([0, 1, 255, 1000, 2**16, 2**32 - 1])]
        if case["stage"] == "quantise_row":
            peak = max(abs(x) for x in case["in"])
            return [self.random.choice([peak, peak, 2 * peak // 3, 3 * peak // 2, 0, 2**31])]
        if count == 1 or self.random.random() < 0.4:
            return [self.random.getrandbits(32) for _ in range(count)]
        length = case["imm"][4] if len(case["imm"]) > 4 else 100
        rest = [self.random.randint(-3000, 3000) for _ in range(length - COLUMNS)]
        row = rest + [signed(x, 24) for x in case["in"]]
        return [word >> shift & 0xffffffff
                for word in (sum(row), sum(x * x for x in row)) for shift in (0, 32)]

    def case(self, op, kind, number):
        in_bits = self.random.choice([8, 12, 17])
        case = {"stage": op, "operand": kind, "rounding": "half_up", "side": "none",
                "imm": self.immediates(op, kind, in_bits), "continues": False,
                "valid_cols": COLUMNS}
        if op in ("add", "sub", "requantise", "mul", "rope", "divide"):
            case["rounding"] = ROUNDINGS[number % 3]
        if op == "softmax":
            case["imm"][0] = number % 3
        small = number % 2 or op in ("exp", "silu", "softmax", "tanh")
        case["in"] = self.small(in_bits) if small else self.words()
        if kind == "channel":
            words = 2 if op in ("requantise", "layer_norm", "layer_norm_apply") else 1
            case["parameters"] = [self.words() for _ in range(words)]
            if op == "mask":
                case["parameters"] = [[self.random.choice([0, 1, -5]) for _ in range(COLUMNS)]]
            if "norm" in op:
                case["parameters"][0] = self.small(16)
        if kind == "tensor":
            case["tensor"] = self.random.choice(list(TENSORS))
            case["y"] = self.words(*TENSORS[case["tensor"]])
            if op == "divide":
                case["y"][number % COLUMNS] = 0
            if op == "mask":
                case["y"] = [x if self.random.random() < 0.5 else 0 for x in case["y"]]
        if op in ("softmax", "mask") and kind == "immediate":
            case["valid_cols"] = [COLUMNS, 1 if op == "mask" else 10, 7][number % 3]
        reads = kind == "row" or op.endswith("_apply")
        if not reads and op != "softmax":
            case["side"] = self.random.choice(["none", "row_max", "row_sum", "sum_squares", "row_peak"])
            case["continues"] = case["side"] != "none" and self.random.random() < 0.5
        if reads or case["side"] != "none":
            case["statistics"] = self.row_statistics(case)
        return case


def drawn(draw, op, kind, number):
    """A case whose results are not all limits."""
    while True:
        case = draw.case(op, kind, number)
        compute(case)
        # A value over itself is a power of two.
        few = op == "mask" or (op == "divide" and kind == "saved")
        if few or len(set(case["out"])) > COLUMNS // 2:
            return case


def edges():
    """Values that a reader can compute: ties, limits, signs."""
    base = {"operand": "immediate", "rounding": "half_up", "side": "none", "continues": False,
            "valid_cols": COLUMNS}
    ties = [-7, -6, -5, -4, -3, -2, -1, 1, 2, 3, 5, 6]
    ends = [LOWEST, LOWEST + 1, -129, -128, -127, -1, 0, 1, 127, 128, HIGHEST - 1, HIGHEST]
    for mode in ROUNDINGS:
        yield dict(base, stage="requantise", rounding=mode, imm=[3, 2, -127, 127], **{"in": ties})
        yield dict(base, stage="mul", rounding=mode, imm=[2, -127, 127, 3], **{"in": ties})
        for y in (4, -4, 6, -6):
            yield dict(base, stage="divide", rounding=mode, imm=[1, -127, 127, y], **{"in": ties})
        for y in (1, -1, LOWEST, HIGHEST):
            yield dict(base, stage="divide", rounding=mode, imm=[31, LOWEST, HIGHEST, y], **{"in": ends})
    yield dict(base, stage="clamp", imm=[-128, 126], **{"in": ends})
    yield dict(base, stage="relu", imm=[], **{"in": ends})
    yield dict(base, stage="add", imm=[0, 0, 0, 0, 1], **{"in": ends})
    yield dict(base, stage="sub", imm=[0, 0, 0, 0, 1], **{"in": ends})
    for side, before in (("row_max", [2**31]), ("row_sum", [2**32 - 1]), ("row_peak", [128]),
                         ("sum_squares", [2**32 - 1, 2**32 - 1, 2**32 - 1, 0])):
        for continues in (False, True):
            yield dict(base, stage="relu", imm=[], side=side, continues=continues,
                       statistics=before, **{"in": ends})
            yield dict(base, stage="clamp", imm=[LOWEST, -2], side=side, continues=continues,
                       statistics=before, **{"in": ends})


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("output", help="JSON file to write")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    draw = Draw(2024)
    cases = list(edges())
    for case in cases:
        compute(case)
    for op, kinds in OPERANDS.items():
        for kind in kinds.split():
            count = CASES if len(kinds.split()) > 2 else 2 * CASES
            cases += [drawn(draw, op, kind, number) for number in range(count)]
    with open(arguments.output, "w", encoding="ascii") as file:
        file.write('{\n"about":"stages of the post-op chain, script/train/make_stage_goldens.py",\n'
                   '"cases":[\n')
        file.write(",\n".join(json.dumps(case, separators=(",", ":")) for case in cases))
        file.write("\n]}\n")


if __name__ == "__main__":
    main()
