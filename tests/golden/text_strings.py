"""Seeded strings that a tokenizer must survive: natural text, scripts, digits, spaces, marks, emoji, controls, code.

Random characters are drawn only from those whose letter, number or other class has been the same since Unicode 3.2, so
that the expected ids test the tokenizer and not the age of a Unicode table.
"""

import random
import unicodedata

from natural_text import SENTENCES

OLD = unicodedata.ucd_3_2_0

SCRIPTS = {  # first and last code point of blocks
    "latin": [(0x00C0, 0x024F), (0x0250, 0x02AF), (0x1E00, 0x1EFF)],
    "greek": [(0x0370, 0x03FF), (0x1F00, 0x1FFF)],
    "cyrillic": [(0x0400, 0x04FF)],
    "armenian": [(0x0531, 0x0587)],
    "hebrew": [(0x0591, 0x05F4)],
    "arabic": [(0x060C, 0x06FF), (0xFB50, 0xFDFB), (0xFE70, 0xFEFC)],
    "syriac": [(0x0700, 0x074A)],
    "devanagari": [(0x0901, 0x0970)],
    "bengali": [(0x0981, 0x09FA)],
    "gurmukhi": [(0x0A02, 0x0A74)],
    "gujarati": [(0x0A81, 0x0AEF)],
    "tamil": [(0x0B82, 0x0BF2)],
    "telugu": [(0x0C01, 0x0C6F)],
    "malayalam": [(0x0D02, 0x0D6F)],
    "thai": [(0x0E01, 0x0E5B)],
    "lao": [(0x0E81, 0x0EDD)],
    "tibetan": [(0x0F00, 0x0FCF)],
    "myanmar": [(0x1000, 0x1059)],
    "georgian": [(0x10D0, 0x10FB)],
    "jamo": [(0x1100, 0x11F9)],
    "ethiopic": [(0x1200, 0x137C)],
    "cherokee": [(0x13A0, 0x13F4)],
    "khmer": [(0x1780, 0x17E9)],
    "mongolian": [(0x1800, 0x18A9)],
    "kana": [(0x3041, 0x30FE)],
    "cjk": [(0x4E00, 0x9FA5), (0x3400, 0x4DB5), (0x20000, 0x2A6D6)],
    "hangul": [(0xAC00, 0xD7A3)],
    "fullwidth": [(0xFF01, 0xFFDC)],
    "old italic and gothic": [(0x10300, 0x1034A)],
    "symbols": [(0x2010, 0x206F), (0x20A0, 0x20B1), (0x2100, 0x23CE), (0x2500, 0x27BE), (0x2900, 0x2AFF)],
    "mathematical": [(0x1D400, 0x1D7FF)],
    "musical": [(0x1D100, 0x1D1DD)],
}

NUMBERS = [0x0660, 0x06F0, 0x0966, 0x09E6, 0x0E50, 0x0F20, 0x17E0, 0xFF10]  # zeros of decimal digits (Nd)
LETTER_NUMBERS = "ⅠⅡⅢⅣⅧⅫⅭⅯⅰⅷⅿↀↁ〇〡〨〹"  # Nl
OTHER_NUMBERS = "²³¹¼½¾⅓⅔⅛⅞⁰⁴⁹₀₁₉①②⑩⑳⑴⒈❶❿㈠㊀㊿৴༪"  # No
SPACES = [" ", "\t", "\n", "\r", "\r\n", "\v", "\f", "\u00a0", "\u1680", "\u2003", "\u2009", "\u200a", "\u202f",
          "\u205f", "\u3000", "\u2028", "\u2029", "\u0085"]
INVISIBLE = ["\u200b", "\u200c", "\u200d", "\u200e", "\u200f", "\u202a", "\u202e", "\u2060", "\ufeff", "\u00ad",
             "\ufffd", "\ufffc", "\ufdd0", "\ufffe", "\U0001ffff", "\ue000"]
MARKS = [chr(c) for c in list(range(0x0300, 0x0340)) + [0x0483, 0x05B0, 0x05BC, 0x064B, 0x0651, 0x0670, 0x093C, 0x093F,
         0x094D, 0x0E31, 0x0E48, 0x1037, 0x20D0, 0x20DD, 0x3099, 0x309A, 0xFE00, 0xFE0F, 0xFE20]]
EMOJI = ["😀", "😂", "🥲", "👍", "👩", "🐈", "🌍", "🚀", "🎉", "❤️", "☕", "✂️", "☺", "🫠", "🧑‍🚀", "👩‍👩‍👧‍👦",
         "👨‍👩‍👧", "🏳️‍🌈", "🏴‍☠️", "🐈‍⬛", "❤️‍🔥", "👩🏽‍💻", "👍🏿", "🤝🏻", "🇫🇮", "🇧🇷", "🇺🇳", "1️⃣", "#️⃣",
         "*⃣", "🏴󠁧󠁢󠁳󠁣󠁴󠁿", "👁️‍🗨️", "🧔‍♀️"]
CODE = [
    "for (int i = 0; i < n; ++i) sum += x[i] * y[i];",
    "def area(w, h=2.5):\n    \"\"\"Square metres.\"\"\"\n    return w * h\n",
    "if not path.exists():\n\traise ValueError(f\"{path!r} is missing\")\n",
    "{\"name\": \"Ada\", \"age\": 36, \"tags\": [\"a\", \"b\"], \"ok\": true, \"x\": null}",
    "<div class=\"row\">\n    <a href='/x?id=12&y=3'>Go</a>\n</div>\n",
    "SELECT name, COUNT(*) FROM visits WHERE day >= '2021-03-05' GROUP BY name;",
    "template <class T, int N>\nstruct Array {\n  T data[N];\n  constexpr int size() const { return N; }\n};\n",
    "curl -sS -o out.tar.gz https://example.org/v1.2.3/file.tar.gz && tar xzf out.tar.gz",
    "\\begin{equation} e^{i\\pi} + 1 = 0 \\end{equation}",
    "#include <cstdint>\nstd::uint64_t key = 0x9E3779B97F4A7C15ull;\n",
    "x = [i**2 for i in range(10) if i % 3 == 0]  # squares",
    "let total = items.filter(i => i.price > 0).map(i => i.price).reduce((a, b) => a + b, 0);",
    "\t\t\tif err != nil {\n\t\t\t\treturn nil, fmt.Errorf(\"open %s: %w\", name, err)\n\t\t\t}\n",
    "fn main() -> Result<(), Box<dyn Error>> {\n    let x: Vec<u8> = vec![0; 1024];\n    Ok(())\n}\n",
    "| a | b |\n|---|--:|\n| 1 | 2.50 |\n",
    "git commit -m \"don't split CRLF\\r\\n\" --author='A <a@b.c>'",
]
CONTRACTIONS = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'T", "'RE", "'VE", "'LL", "’s", "’t", "'x", "''",
                "'"]
WORDS = ["I", "you", "we", "they", "it", "don", "can", "won", "she", "who", "DON", "Café", "naïve", "x2", "A", "the",
         "and", "_name", "e", "snake_case", "CamelCase", "ÄÖÜ", "日本", "дом"]


def characters(ranges):
    """The characters of the blocks whose class never changed."""
    found = []
    for first, last in ranges:
        for code in range(first, last + 1):
            then, now = OLD.category(chr(code)), unicodedata.category(chr(code))
            if then not in ("Cn", "Co", "Cs") and then[0] == now[0]:
                found.append(chr(code))
    return found


class Strings:
    """Makes strings of every kind; special: the tokenizer's added tokens."""

    def __init__(self, seed, special):
        self.random = random.Random(seed)
        self.special = special
        self.scripts = {name: characters(ranges) for name, ranges in SCRIPTS.items()}
        self.languages = list(SENTENCES)

    def pick(self, values):
        return self.random.choice(values)

    def some(self, make, least, most, joint=""):
        return joint.join(make() for _ in range(self.random.randint(least, most)))

    def sentence(self):
        return self.pick(SENTENCES[self.pick(self.languages)])

    def natural(self):
        """One to three sentences of one language; English most often."""
        sentences = SENTENCES["English" if self.random.random() < 0.25 else self.pick(self.languages)]
        count = min(len(sentences), self.random.choice([1, 1, 2, 2, 3]))
        joint = self.random.choice([" ", " ", " ", "\n", "\n\n"])
        return joint.join(self.random.sample(sentences, count))

    def mixed(self):
        first, second = self.sentence(), self.sentence()
        cut = self.random.randint(0, len(first))
        return first[:cut] + self.pick(["", " ", "/", " ("]) + second[self.random.randint(0, len(second)):]

    def script(self):
        letters = self.scripts[self.pick(list(self.scripts))]
        word = lambda: self.some(lambda: self.pick(letters), 1, 6)
        return self.some(word, 1, 4, self.pick([" ", " ", "", "-"]))

    def number(self):
        kind = self.random.randrange(7)
        digits = lambda zero: self.some(lambda: chr(zero + self.random.randrange(10)), 1, 7)
        if kind == 0:
            return digits(0x30)
        if kind == 1:
            return digits(self.pick(NUMBERS))
        if kind == 2:
            return self.some(lambda: self.pick(LETTER_NUMBERS), 1, 3)
        if kind == 3:
            return self.some(lambda: self.pick(OTHER_NUMBERS), 1, 3)
        if kind == 4:
            return f"{self.random.randint(0, 99999):,}.{self.random.randint(0, 99):02}"
        if kind == 5:
            return f"{self.random.randint(1900, 2099)}-{self.random.randint(1, 12):02}-{self.random.randint(1, 28):02}"
        before, after = ["-", "+", "$", "€ ", "#", "x", "π", "v"], ["%", "km", "", "e-5", "th"]
        return self.pick(before) + digits(0x30) + self.pick(after)

    def numbers(self):
        gap = lambda: " " * self.random.choice([0, 1, 1, 2, 3, 5]) + self.pick(["", "", ",", "a", "/"])
        return self.some(lambda: gap() + self.number(), 1, 6) + gap()

    def space_run(self):
        space = self.pick(SPACES if self.random.random() < 0.4 else SPACES[:5])
        return space * self.random.choice([1, 1, 2, 3, 4, 7, 8, 17])

    def spaces(self):
        piece = lambda: self.pick([self.space_run(), self.pick(WORDS), self.number(), self.pick(".,;!?()[]{}<>=")])
        return self.space_run() + self.some(piece, 1, 8) + self.pick(["", self.space_run()])

    def marks(self):
        letters = self.scripts[self.pick(["latin", "greek", "cyrillic", "hebrew", "devanagari", "thai", "kana"])]
        base = lambda: self.pick([self.pick(letters), self.pick("aeionAEc")])
        cluster = lambda: base() + self.some(lambda: self.pick(MARKS), 0, 4)
        text = self.some(cluster, 1, 10)
        if self.random.random() < 0.4:
            word = self.pick(["Ångström", "Việt Nam", "한국어", "Ǖber", "ガギグ"])
            text += " " + unicodedata.normalize(self.pick(["NFD", "NFC"]), word)
        return text

    def emoji(self):
        piece = lambda: self.pick(EMOJI) * self.random.choice([1, 1, 1, 2, 3])
        row = self.some(piece, 1, 5, self.pick(["", " "]))
        return self.pick(["", "ok ", "so "]) + row + self.pick(["", "!", " bye"])

    def controls(self):
        low, high = lambda: chr(self.random.randrange(0x20)), lambda: chr(self.random.randrange(0x7F, 0xA0))
        odd = lambda: self.pick([low(), high(), self.pick(INVISIBLE)])
        return self.some(lambda: self.pick([odd(), odd(), self.pick(WORDS), " "]), 1, 12)

    def specials(self):
        def piece():
            token = self.pick(self.special)
            broken = [token[:-1], token[1:], token.upper(), token[:2] + " " + token[2:], token * 2]
            others = [self.pick(broken), self.pick(WORDS), " ", "  ", "\n", self.sentence()[:20]]
            return self.pick([token, token, token, *others])
        return self.some(piece, 1, 7)

    def code(self):
        text = self.pick(CODE)
        if self.random.random() < 0.4:
            text = text.replace("    ", self.pick(["\t", "  ", "        "])).replace("\n", self.pick(["\n", "\r\n"]))
        if self.random.random() < 0.3:
            text = "".join(self.pick(["  ", "    ", "\t"]) + line for line in text.splitlines(keepends=True))
        return text

    def contractions(self):
        piece = lambda: self.pick(WORDS) + self.pick(CONTRACTIONS) + self.pick(["", "s", " "])
        return self.some(piece, 1, 6, self.pick([" ", " ", "", "  "]))

    def runs(self):
        repeated = ["a", "ha", "=", "-", "_", ".", "!", "?", "ß", "的", "é", "\\", "0", "ab1", "~"]
        piece = lambda: self.pick(repeated) * self.random.randint(2, 70)
        return self.some(piece, 1, 2)

    def single(self):
        return self.pick([chr(self.random.randrange(0x20, 0x7F)), chr(self.random.randrange(0xA1, 0x100))])

    def make(self, count, shares):
        """count strings, shares: list of (kind, share); sorted by kind as listed, equal strings drawn again."""
        strings, seen = [], set()
        for kind, share in shares:
            wanted = round(count * share)
            while wanted:
                text = getattr(self, kind)()
                if text in seen:
                    continue
                seen.add(text)
                strings.append(text)
                wanted -= 1
        return strings


SHARES = [("natural", 0.35), ("mixed", 0.08), ("script", 0.11), ("numbers", 0.09), ("spaces", 0.08), ("marks", 0.05),
          ("emoji", 0.05), ("controls", 0.05), ("specials", 0.07), ("code", 0.02), ("contractions", 0.02),
          ("runs", 0.015), ("single", 0.0145)]


def varied_strings(seed, count, special):
    """count different strings of all kinds, the empty one first; what rounding leaves over is natural text."""
    maker = Strings(seed, special)
    strings = [""] + maker.make(count, SHARES)
    while len(strings) < count:
        text = maker.natural()
        strings += [text] if text not in strings else []
    return strings[:count]
