"""Finds what can be changed in a kernel file, by its tokens and the spaces of clang-format. For mutate_logic.py."""
import re

TOKENS = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/|^[ \t]*\#(?:[^\n\\]|\\.|\\\n)*)
      | (?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
      | (?P<number>\.?\d(?:[eEpP][+-]|[\w.'])*)
      | (?P<name>[A-Za-z_]\w*)
      | (?P<sign><<=|>>=|\.\.\.|->\*|<=|>=|==|!=|&&|\|\||\+=|-=|\*=|/=|%=|\|=|&=|\^=|\+\+|--|->|::|<<|>>|.)""",
    re.VERBOSE | re.DOTALL | re.MULTILINE)
COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
# What replaces `a op b`, as mutant.hpp does it.
ALONE = ("left alone", "right alone")
BINARY = {"+": ("-", "off by one"), "-": ("+", "off by one"), "*": ALONE, "/": ("left alone", "off by one"),
          "%": ("left alone", "off by one"), "<<": ("left alone", "<< 1 more"), ">>": ("left alone", ">> 1 more"),
          "&": ALONE, "|": ALONE, "^": ALONE}
COUNTING = {"+=": ("-=", "nothing", "off by one"), "-=": ("+=", "nothing", "off by one")}
ASSIGNMENTS = {sign: ("=", "nothing") for sign in ("*=", "/=", "|=", "&=", "^=")}
CHOICES = {"min": "least", "max": "most", "fmaxf": "most_float"}
OPEN, CLOSED = "([{", ")]}"
BORDERS = {",", ";", "=", "+=", "-=", "*=", "/=", "|=", "&=", "^=", "?", ":", "&&", "||", "return"}
NO_STATEMENTS = set(
    "if for while do else switch case default break continue return goto using struct class enum template typename "
    "public private namespace static_assert const constexpr auto static inline __syncthreads __syncwarp "
    "TYPEFORMER_SHARED_ARRAY TYPEFORMER_UNROLL TYPEFORMER_UNROLL_BY".split())


class Site:
    """A place in a file, the edits that make it mutable, and its variants: {number: what the marked text becomes}."""

    def __init__(self, file, text, span, edits, variants):
        self.file, self.edits, self.variants = file, edits, variants
        self.number = -1
        self.line = text.count("\n", 0, span[0]) + 1
        begin, end = text.rfind("\n", 0, span[0]) + 1, text.find("\n", span[1])
        self.parts = [text[begin:span[0]], text[span[0]:span[1]], text[span[1]:end]]

    def marked(self, variant):
        before, middle, after = self.parts
        return " ".join(f"{before}[{middle} as {self.variants[variant]}]{after}".split(" // ")[0].split())


class Tokens:
    def __init__(self, text):
        self.text = text
        self.kinds, self.words, self.spans = ["sign"] * 4, [";"] * 4, [(0, 0)] * 4  # before the first one
        for match in TOKENS.finditer(text):
            if match.lastgroup != "space":
                self.kinds.append(match.lastgroup)
                self.words.append(match.group())
                self.spans.append(match.span())
        for of_each, last in ((self.kinds, "sign"), (self.words, ";"), (self.spans, (len(text), len(text)))):
            of_each += [last] * 4
        self.partner = self.pairs()
        self.constant = self.constants()

    def pairs(self):
        partner, stack = {}, []
        for i, word in enumerate(self.words):
            if word in OPEN:
                stack.append(i)
            elif word in CLOSED and stack:
                j = stack.pop()
                partner[i], partner[j] = j, i
        return partner

    def spaced(self, i):
        """Whether there is white space on both sides."""
        begin, end = self.spans[i]
        return self.text[begin - 1:begin].isspace() and self.text[end:end + 1].isspace()

    def constants(self):
        """Tokens of declarations and expressions that the compiler needs to know."""
        constant = set()
        i = 0
        while i < len(self.words):
            word, end = self.words[i], None
            if word == "template" and self.words[i + 1] == "<":
                depth, end = 1, i + 2
                while depth:
                    depth += {"<": 1, ">": -1, ">>": -2}.get(self.words[end], 0)
                    end += 1
            elif word in ("static_assert", "using", "case", "enum") or self.is_variable(i):
                end = i
                while self.words[end] != ";" and not (word == "case" and self.words[end] == ":"):
                    end = self.partner[end] + 1 if self.words[end] in OPEN else end + 1
            elif (word in ("__launch_bounds__", "TYPEFORMER_SHARED_ARRAY", "TYPEFORMER_UNROLL_BY")
                  or self.words[i - 1:i + 1] == ["if", "constexpr"]):
                end = self.partner[i + 1] + 1
            if end:
                constant.update(range(i, end))
                i = end
            else:
                i += 1
        return constant

    def is_variable(self, i):
        """Whether a constexpr variable begins here."""
        if self.words[i] != "constexpr" or self.words[i - 1] == "if":
            return False
        while self.words[i] not in ("=", ";", "(", "{"):
            i += 1
        return self.words[i] in "=;"

    def is_template_argument(self, i):
        depth = 0
        while self.words[i] not in (";", "{", "}", "(", "[", "="):
            if self.words[i] in "<>" and not self.spaced(i):
                depth += 1 if self.words[i] == ">" else -1
                if depth < 0:
                    return True
            i = self.partner[i] - 1 if self.words[i] in CLOSED else i - 1
        return False

    def border(self, i, step):
        """The first token from i on, in steps of 1 or -1, that ends an operand of a condition."""
        brackets, stop = (OPEN, CLOSED) if step > 0 else (CLOSED, OPEN)
        while self.words[i] not in BORDERS and self.words[i] not in stop:
            i = self.partner[i] + step if self.words[i] in brackets else i + step
        return i

    def at_depth(self, first, last):
        i = first
        while i <= last:
            yield i
            i = self.partner[i] if self.words[i] in OPEN and self.partner[i] <= last else i
            i += 1

    def in_for_header(self, i):
        depth = 0
        while i > 0 and depth >= 0 and self.words[i] not in "{}":
            depth += {")": 1, "(": -1}.get(self.words[i], 0)
            i -= 1
        return depth < 0 and self.words[i] == "for"


def operators(t, file):
    for i, word in enumerate(t.words):
        if i in t.constant or not t.spaced(i):
            continue
        if "string" in (t.kinds[i - 1], t.kinds[i + 1]) or "to_string" in t.words[i + 1:i + 4]:
            continue
        end = t.spans[i][1]
        edits = [(end, f" ::mutant::Op{{SITE}} {word}")]
        if word in COMPARISONS:
            what = {0: COMPARISONS[word], 1: "false", 2: "true"}
            if word in ("==", "!="):
                del what[0]
            if t.in_for_header(i):
                what.pop(2)
        elif word in BINARY and t.words[i - 1] not in ("operator", "return", ",", "("):
            what = dict(enumerate(BINARY[word]))
        elif word in COUNTING:
            what = {2: COUNTING[word][2]} if t.in_for_header(i) else dict(enumerate(COUNTING[word]))
        elif word in ASSIGNMENTS and not t.in_for_header(i):
            what = dict(enumerate(ASSIGNMENTS[word]))
        else:
            continue
        yield Site(file, t.text, t.spans[i], edits, what)


def conditions(t, file):
    """Operands of && and ||, and what if, while and ?: test, unless they are comparisons."""
    ranges = set()
    for i, word in enumerate(t.words):
        if i in t.constant:
            continue
        if word in ("&&", "||") and t.spaced(i) and "..." not in (t.words[i - 1], t.words[i + 1]):
            ranges.add((t.border(i - 1, -1) + 1, i - 1))
            ranges.add((i + 1, t.border(i + 1, 1) - 1))
        elif word == "?":
            ranges.add((t.border(i - 1, -1) + 1, i - 1))
        elif word in ("if", "while") and t.words[i + 1] == "(":
            ranges.add((i + 2, t.partner[i + 1] - 1))
    for first, last in sorted(ranges):
        words = [t.words[i] for i in t.at_depth(first, last)]
        if any(word in ("&&", "||", "=", ";", "auto", "requires") or word in COMPARISONS and t.spaced(first + n)
               for n, word in zip((i - first for i in t.at_depth(first, last)), words)):
            continue
        span = (t.spans[first][0], t.spans[last][1])
        yield Site(file, t.text, span, call("condition", span), {0: "false", 1: "true"})


def call(function, span):
    """The edits that make what stands in `span` an argument."""
    return [(span[0], f"::mutant::{function}(SITE, "), (span[1], ")")]


def literals(t, file):
    for i, kind in enumerate(t.kinds):
        literal = t.words[i]
        if i in t.constant or not (kind == "number" or literal in ("INFINITY", "true", "false")):
            continue
        before = t.words[i - 1]
        declares_array = before == "[" and t.kinds[i - 2] == "name" and (
            t.kinds[i - 3] == "name" or t.words[i - 3] in ">*,")
        converts = before == "{" and (t.kinds[i - 2] == "name" or t.words[i - 2] == ">")  # must not narrow
        if not (declares_array or converts or t.is_template_argument(i) or t.in_for_header(i) and before == "="):
            yield Site(file, t.text, t.spans[i], call("literal", t.spans[i]), {0: other_literal(literal)})


def other_literal(literal):
    """As mutant.hpp's literal."""
    if literal in ("true", "false"):
        return "false" if literal == "true" else "true"
    if literal.startswith("0x"):
        return "1 more"
    if literal != "INFINITY" and not re.search("[.ef]", literal):
        return str(int(re.sub("[uUlL']", "", literal)) + 1)
    return "1" if re.fullmatch(r"0?\.?0?f?", literal) else "0"


def choices(t, file):
    for i, word in enumerate(t.words):
        if i in t.constant or word not in CHOICES or t.words[i + 1] != "(" or t.words[i - 1] in (".", "->"):
            continue
        begin = t.spans[i - 2][0] if t.words[i - 1] == "::" else t.spans[i][0]
        edits = [(begin, f"::mutant::{CHOICES[word]}(SITE, ", t.spans[i + 1][1])]
        yield Site(file, t.text, (begin, t.spans[i][1]), edits, {0: "left of", 1: "right of"})


def statements(t, file):
    """Assignments and calls that are statements."""
    for i, word in enumerate(t.words):
        starts = t.words[i - 1] in (";", "{", "}", "else") or (
            t.words[i - 1] == ")" and t.words[t.partner[i - 1] - 1] in ("if", "for", "while"))
        if i in t.constant or not starts or word in NO_STATEMENTS:
            continue
        if not (t.kinds[i] == "name" or word == "*" and not t.spaced(i)):
            continue
        end = i
        while t.words[end] not in (";", "{", "}", ")"):
            end = t.partner[end] + 1 if t.words[end] in OPEN else end + 1
        top = [t.words[n] for n in t.at_depth(i, end)]
        left = list(t.at_depth(i, end))
        left = left[:top.index("=")] if "=" in top else left
        declares = "=" in top and ">" in (t.words[n] for n in left) or any(
            t.kinds[a] == "name" and (t.kinds[b] == "name" or t.words[b] in "*&" and b < end and not t.spaced(b))
            for a, b in zip(left, left[1:]))
        changes = any(sign in top for sign in ("+=", "-=", "*=", "|=", "++", "--", "delete"))  # an operator's site
        if t.words[end] != ";" or t.in_for_header(i) or declares or changes or not ("=" in top or "(" in top):
            continue
        if any(name.startswith("cp_async") for name in top):
            continue  # synchronization: mutate_synchronization.py
        begin, end = t.spans[i][0], t.spans[end][1]
        first_line = t.text[begin:end].split("\n")[0]
        yield Site(file, t.text, (begin, begin + len(first_line)),
                   [(begin, "{ if (::mutant::keeps(SITE)) "), (end, " }")], {0: "nothing"})


def find(text, file, first):
    """The sites of a file, numbered from `first` on."""
    tokens = Tokens(text)
    sites = [site for kind in (operators, conditions, literals, choices, statements) for site in kind(tokens, file)]
    sites.sort(key=lambda site: (site.line, len(site.parts[0])))
    for number, site in enumerate(sites):
        site.number = first + number
    return sites


def rewritten(text, sites):
    """The text with every site mutable. Lines stay where they are."""
    edits = []
    for site in sites:
        width = site.edits[-1][0] - site.edits[0][0]
        for nth, (at, insertion, *until) in enumerate(site.edits):
            # of insertions at one place, outer ones come first when they open, last when they close
            order = (at, 1, width) if nth else (at, 2, -width)
            edits.append((order, at, insertion.replace("SITE", str(site.number)), until[0] if until else at))
    result, copied = [], 0
    for _, begin, insertion, end in sorted(edits):
        result += [text[copied:begin], insertion]
        copied = end
    return "".join([*result, text[copied:]])
