"""Makes jinja.jsonl: what Jinja, set up as transformers sets it up, makes of each construct that the interpreter knows.

Usage, with `pip install jinja2==3.1.6`: python3 make_jinja.py [SEED] > jinja.jsonl
The first line holds what all templates see: {"messages", "variables"}. Then one object a line:
{"template", "add_generation_prompt", "expected"}; expected is null where Jinja raises.
"""
import json
import random
import sys

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

VARIABLES = {"x": 3, "f": 0.1, "t": True, "n": None, "s": " Héllo wörld \n", "l": [1, 2.5, "a", None, True, [1, "b'"]],
             "d": {"role": "u\"ser'", "k": 1, "b": {"c": []}}}
MESSAGES = [{"role": "system", "content": "Be é"}, {"role": "user", "content": " a \n"}, {"role": "assistant", "content": "ok"}]

EXPRESSIONS = """
1 + 2 * 3 - 4 // 3 % 2 | -7 // 2 | -7 % 3 | 7 / 2 | 7 // 2.0 | -7.5 % 2 | 1e20 | 1e16 | 123456789.0 | 1e-5 | 0.0001 | 2.0 | 1.5e3 | f + 0.2
'a' + 'b' | 'a' ~ 1 ~ none ~ true ~ 1.0 | 'ab' * 3 | [1] * 2 + [2] | 'a' 'b' | 'a' + 1 | 1 + none | u ~ 'x' | u + 'x' | '1' + u
1 == 1.0 | true == 1 | 'a' == 'a' | none == none | u == v | [1, [2]] == [1, [2]] | (1, 2) == [1, 2] | {'a': 1} == {'a': 1.0} | 'a' != 1
1 < 2 < 3 | 3 > 2 > 2 | 'a' < 'b' | 'Z' < 'a' | 'é' > 'z' | 1 < 'a' | x >= 3 and x <= 3 | 1 < 2.5
'a' in 'abc' | 'x' not in 'abc' | 1 in [1, 2] | 'k' in d | 'q' in d | 'a' in u | 1 in 'a' | none in l | 'user' in ['user', 'tool'] | 'a' in ('a', 'b')
not x | not not n | x and s and n | n or '' or 'z' | x if t else y | x if n | (x if n) is defined | 1 if 0 else 2 if 0 else 3 | not 1 == 2
l[0] | l[-1] | l[9] | l[1:3] | l[::-1] | l[:-2] | l[5:1:-2] | s[1:4] | s[-2:] | s[::-1] | s[0] | 'ab'[1:][0] | l[x] | l['a'] | d['k'] | d['q'] | d.k | d.b.c | d.q | d.q.r | u[0] | n.a | x.y
messages[0].role | messages[-1]['content'] | messages[1:][0].content | (messages | first).role | (messages | last)['role'] | messages | length | messages[7] | messages[7].role
s | trim | s | length | s | upper | s | lower | s | capitalize | s | title | 'straße' | upper | s | replace('l', 'L') | s | replace('l', 'L', 1) | '  x  ' | trim | 'xxaxx' | trim('x') | 5 | upper
u | default('q') | n | default('q') | n | default('q', true) | '' | d('z', boolean=true) | 0 | default(7, true) | d.q | default([]) | x | default(1)
l | length | d | length | u | length | 5 | length | l | first | l | last | [] | first | 'abc' | first | 'abc' | list | d | list | u | list | (1, 2) | list
l | join(', ') | ['a', 'b'] | join | 'abc' | join('-') | [] | join(',') | d | join('/') | l | string | d | string | s | string | 1.0 | string | none | string
'12' | int | ' 12 ' | int | '1.9' | int | 'x' | int | 'x' | int(5) | 2.9 | int | true | int | none | int | '-3' | int | '+3' | int | [] | int
d | tojson | l | tojson | d | tojson(indent=2) | l | tojson(indent=4) | [] | tojson(indent=2) | {} | tojson | 'é"\\\\/\\n\\x01\\x7f\\t<>&' | tojson | 'é😀' | tojson(ensure_ascii=true) | f | tojson | none | tojson | 1e100 | tojson | u | tojson
messages | tojson | messages[0] | tojson(indent=1) | d | items | list | d.items() | list | d.keys() | list | d.values() | list | d.get('k') | d.get('q') | d.get('q', 5) | u | items | list
l | d | (1, 'a') | (1,) | () | [] | {} | {'a': [1, {'b': none}], "c'": 'x"y'} | 'it\\'s' | ["it's"] | ['a"b'] | ['a"\\'b'] | ['é', '\\n', '\\u200b', '\\x00', '\\\\', '\\u3000', '😀']
x is defined | u is defined | u is not defined | u is undefined | n is none | x is none | s is string | x is string | x is number | t is number | f is number | 's' is number | x is integer | t is integer | f is float
d is mapping | l is mapping | l is iterable | s is iterable | x is iterable | d is iterable | l is sequence | d is sequence | x is sequence | t is boolean | x is boolean | t is true | t is false | 1 is true | x is odd | x is even | x is divisibleby 3 | x is divisibleby(2)
x is eq 3 | x is equalto(4) | x is ne 4 | x is in [1, 3] | 'a' is in 'abc' | not x is defined | x is not none and x is defined | x is defined and u is not defined or false
s.strip() | s.lstrip() | s.rstrip() | 'xxaxx'.strip('x') | 'abcba'.lstrip('ab') | s.split() | s.split('l') | s.split('l', 1) | s.split(none, 1) | '' .split() | ''.split('a') | 'a,,b'.split(',') | 'a b  c '.split(none, 1) | s.split('')
s.startswith(' H') | 'abc'.startswith(('x', 'a')) | 'abc'.endswith('c') | 'abc'.endswith('') | s.upper() | s.lower() | 'aBC dE'.capitalize() | 'aba'.replace('a', 'xx') | 'aba'.replace('a', '', 1) | 'héllo'.find('l') | 'a'.find('z') | s.startswith(1)
range(3) | list | range(1, 4) | list | range(5, 0, -2) | list | range(0) | list | range(3, 1) | list | dict(a=1, b=x) | dict({'a': 2}, b=3) | namespace(a=1).a | namespace().zz | bos_token + eos_token | add_generation_prompt | tools is none | documents is none | unk_token is defined
-x | +x | -(-2) | - 2 + 3 | -'a' | (1, 2)[0] | [1, 2][1] | {'a': 1}['a'] | {'a': 1}.a | 'abc'[1] | 'Hello %s' | 007 | raise_exception('no') | foo() | x() | s() | 1 if true
'\\x41\\u00e9\\U0001F600\\t' | 'a\\qb' | "double \\"quoted\\"" | 'line
two' | s.nope | s.nope is defined | d.items is defined | d.pop is defined | s.strip is defined | s.zfill is defined | l.append is defined | l.index is defined | x.y is defined | loop is defined | none | None | True | false
""".strip("\n").replace(" |\n", "\n").split("\n")

STATEMENTS = [
    "{% for m in messages %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.revindex }}{{ loop.revindex0 }} {{ m.role }};{% endfor %}",
    "{% for m in messages %}{{ loop.previtem.role if loop.previtem is defined }}>{{ loop.nextitem.role if not loop.last }};{% endfor %}",
    "{% for a, b in [[1, 2], [3, 4]] %}{{ a }}-{{ b }} {% endfor %}", "{% for (a, b) in d.items() %}{{ a }}={{ b }} {% endfor %}", "{% for a, b in [[1]] %}{% endfor %}",
    "{% for m in messages if m.role != 'system' %}{{ loop.index }}/{{ loop.length }}{{ m.role }} {% else %}none{% endfor %}", "{% for m in [] %}x{% else %}none{% endfor %}",
    "{% for k in d %}{{ k }},{% endfor %}{% for c in 'hé' %}{{ c }},{% endfor %}{% for q in u %}x{% endfor %}", "{% for q in 5 %}{% endfor %}", "{% for q in none %}{% endfor %}",
    "{% for i in range(9) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 5 %}{% break %}{% endif %}{{ i }}{% endfor %}", "{% for i in [1] %}{% continue %}{% else %}else{% endfor %}",
    "{% for i in [1, 2] %}{% for j in [1, 2] %}{{ loop.index }}{% if j == 1 %}{% continue %}{% endif %}{{ i }}{{ j }} {% endfor %}{{ loop.index }};{% endfor %}",
    "{% if x == 1 %}a{% elif x == 3 %}b{% else %}c{% endif %}", "{% if u %}a{% endif %}", "{% if n %}a{% elif '' %}b{% else %}c{% endif %}", "{% if x, %}a{% endif %}",
    "{% set y = 5 %}{{ y }}", "{% set a, b = 1, 2 %}{{ b }}{{ a }}", "{% set y = 1, 2 %}{{ y }}", "{% set y %}text {{ x }}{% endset %}[{{ y }}]", "{% set a, b = [1] %}",
    "{% set y = 1 %}{% for i in [1, 2] %}{% set y = y + i %}{{ y }}{% endfor %}{{ y }}", "{% for i in [1] %}{% set q = 1 %}{% endfor %}{{ q is defined }}", "{% if true %}{% set q = 1 %}{% endif %}{{ q }}",
    "{% set ns = namespace(a=0, b='x') %}{% for i in [1, 2, 3] %}{% set ns.a = ns.a + i %}{% endfor %}{{ ns.a }}{{ ns.b }}{{ ns.c is defined }}", "{% set x.y = 1 %}", "{% set ns = namespace({'a': 1}) %}{{ ns.a }}{{ ns['a'] }}",
    "{% for x in [1, 2] %}{{ x }}{% endfor %}{{ x }}", "{% for i in [3] %}{{ loop.index }}{% endfor %}{{ loop is defined }}",
    "a\n  {% if true %}\n  b\n  {% endif %}\nc\n", "a\n  {{ x }}\n  b\n\n", "a  {%- if true -%}  b  {%- endif -%}  c", "a {{- x -}} b", "  {# c #}\nx {# d #} y\n", "x {#- c -#} y", "{#+ c +#}\n z", "  {%+ if true %}\n a{%+ endif +%}\n b",
    "\n\n{% if true %}\n\n\nx{% endif %}\n\n", "{% if true %} {% endif %}\n \t{% if true %}y{% endif %}", "{{ '{{' }} {{ \"%}\" }} { { % } #}", "a\r\nb\rc\n", "\r\n{% if true %}\r\n  x\r\n{% endif %}\r\n", "{{ {'a': {'b': 1}}['a']['b'] }}", "{{1}}{{ 2}}{{3 }}", "{{-1}}", "{{ x -}}\n\u3000 y",
    "{% raise %}", "{% endif %}", "{{ }}", "{{ 1 2 }}", "{% if %}{% endif %}", "{% for in [] %}{% endfor %}", "{{ x | }}", "{{ x is }}", "{{ [1, }}", "{% set = 1 %}", "{% set true = 1 %}", "{{ 'a", "{# open", "{% if x %}", "{% if x %}{% else %}{% elif x %}{% endif %}",
    "{%if x%}{%for q in l%}{{q}}{%endfor%}{%endif%}", "{% for m in messages %}{% if loop.first and m['role'] == 'system' %}S:{{ m['content'] | trim }}|{% elif m['role'] == 'user' %}U:{{ m['content'].strip() }}|{% else %}A:{{ m['content'] }}{% endif %}{% endfor %}{% if add_generation_prompt %}>{% endif %}",
]
ENDS = ["", "-", "+"]


def environment():
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    made = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols])
    made.filters["tojson"] = tojson
    made.globals["raise_exception"] = raise_exception
    return made


def expressions():
    """The list above is separated by ' | ' like filters are: a part that begins with a filter's name continues the one before."""
    filters = set("trim length upper lower capitalize title replace default d join first last list string int tojson items".split())
    for line in "\n".join(EXPRESSIONS).replace("'line\ntwo'", "'line\0two'").split("\n"):
        whole = ""
        for part in line.replace("\0", "\n").split(" | "):
            name = part.split("(")[0]
            continues = name in filters and whole and part != "d"
            if whole and not continues:
                yield whole
            whole = whole + " | " + part if continues else part
        yield whole


def white_space(source):
    """A template whose tags and texts stand in every kind of white space."""
    def tag(inside):
        return "{%" + source.choice(["", "", "-", "+"]) + " " + inside + " " + source.choice(["", "", "-", "+"]) + "%}"

    def space():
        return source.choice(["", " ", "\n", "\n  ", "  ", "\t\n\n", "a", " b ", "é\n", "\u00a0"])

    return (space() + tag("if " + source.choice(["x", "n"])) + space() + "{{" + source.choice(["", "-"]) + " x " + source.choice(["", "-"]) + "}}" + space() + tag("else") + space()
            + tag("for q in [1, 2]") + space() + "{{ q }}" + space() + tag("endfor") + space() + tag("endif") + space() + "{#" + source.choice(ENDS) + " c " + source.choice(ENDS) + "#}" + space() + tag("set y = 1") + space())


def print_line(value):
    print(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def main():
    source = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
    made = environment()
    print_line({"messages": MESSAGES, "variables": VARIABLES})
    templates = ["{{ " + expression + " }}" for expression in expressions()] + STATEMENTS + [white_space(source) for _ in range(150)]
    for template in templates:
        generate = source.random() < 0.5
        try:
            expected = made.from_string(template).render(messages=MESSAGES, tools=None, documents=None, add_generation_prompt=generate,
                                                         bos_token="<s>", eos_token="</s>", **VARIABLES)
        except Exception:  # whatever Python raises, the interpreter must refuse too
            expected = None
        print_line({"template": template, "add_generation_prompt": generate, "expected": expected})


if __name__ == "__main__":
    main()
