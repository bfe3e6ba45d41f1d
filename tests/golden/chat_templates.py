"""Chats rendered by transformers' own template engine: SmolLM2's template and usual forms, written for these tests."""

from transformers.utils.chat_template_utils import render_jinja_template

CHATML = """{% for message in messages %}
{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|im_start|>assistant\\n' }}
{%- endif %}"""

CHATML_DOTTED = """{%- for message in messages -%}
    <|im_start|>{{ message.role }}
{{ message.content | trim }}<|im_end|>
{% endfor -%}
{%- if add_generation_prompt -%}
    <|im_start|>assistant
{% endif -%}"""

LLAMA2 = """{%- if messages[0]['role'] == 'system' -%}
{%- set turns = messages[1:] -%}
{%- set opening = '<<SYS>>\\n' ~ messages[0]['content'] ~ '\\n<</SYS>>\\n\\n' -%}
{%- else -%}
{%- set turns = messages -%}
{%- set opening = '' -%}
{%- endif -%}
{%- for message in turns -%}
{%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
{{ raise_exception('user and assistant must take turns') }}
{%- endif -%}
{%- if message['role'] == 'user' -%}
{{ bos_token + '[INST] ' + (opening if loop.first else '') + message['content'].strip() + ' [/INST]' }}
{%- elif message['role'] == 'assistant' -%}
{{ ' ' + message['content'] | trim + ' ' + eos_token }}
{%- endif -%}
{%- endfor -%}"""

LLAMA3 = """{{- bos_token }}
{%- for message in messages %}
    {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' }}
    {{- message['content'] | trim }}
    {{- '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}"""

GEMMA = """{{ bos_token }}
{%- if messages[0]['role'] == 'system' %}
    {%- set preface = messages[0]['content'] + '\\n\\n' %}
    {%- set rest = messages[1:] %}
{%- else %}
    {%- set preface = '' %}
    {%- set rest = messages %}
{%- endif %}
{%- for message in rest %}
    {%- set role = 'model' if message['role'] == 'assistant' else message['role'] %}
    {{- '<start_of_turn>' + role + '\\n' + (preface if loop.first else '') }}
    {%- if message['content'] is string %}
        {{- message['content'] | trim }}
    {%- else %}
        {%- for part in message['content'] %}
            {%- if part['type'] == 'text' %}
                {{- part['text'] | trim }}
            {%- endif %}
        {%- endfor %}
    {%- endif %}
    {{- '<end_of_turn>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<start_of_turn>model\\n' }}
{%- endif %}
"""

ZEPHYR = """{% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>\\n' + message['content'] + eos_token }}
{% elif message['role'] == 'system' %}
{{ '<|system|>\\n' + message['content'] + eos_token }}
{% elif message['role'] == 'assistant' %}
{{ '<|assistant|>\\n'  + message['content'] + eos_token }}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}"""

PHI = """{% for message in messages if message['role'] in ['system', 'user', 'assistant'] %}
{%- if not loop.first %}{{ '\\n' }}{% endif -%}
<|{{ message['role'] }}|>
{{ message['content'] }}<|end|>
{%- endfor %}{% if add_generation_prompt %}

<|assistant|>
{% else %}{{ eos_token }}{% endif %}"""

VICUNA = """{%- set found = namespace(system=false) %}
{%- for message in messages %}
  {%- if message['role'] == 'system' %}
    {%- set found.system = true %}
    {{- message['content'] ~ '\\n' }}
  {%- endif %}
{%- endfor %}
{%- if not found.system %}{{ 'A conversation between a person and a helper.\\n' }}{% endif %}
{%- for message in messages if message['role'] != 'system' %}
  {{- {'user': 'USER: ', 'assistant': 'HELPER: '}[message['role']] + message['content'] }}
  {{- eos_token if message['role'] == 'assistant' else ' ' }}
{%- endfor %}
{%- if add_generation_prompt is defined and add_generation_prompt %}{{ 'HELPER:' }}{% endif %}"""

NUMBERED = """{# every turn is numbered and counted #}
{% set total = messages | length %}
{% for message in messages %}
{{ loop.index }}/{{ total }} {{ message.role | upper }}: {{ message.content.split('\\n') | join(' / ') }}
{{- ' [end]' if loop.last }}
{% endfor %}
{% if add_generation_prompt %}{{ total + 1 }}/{{ total + 1 }} {{ 'assistant'.upper() }}:{% endif %}"""


def say(role, content):
    return {"role": role, "content": content}


CHATS = [
    [say("user", "What is gravity?")],
    [say("system", "You answer in one sentence."), say("user", "Why is the sky blue?")],
    [say("user", "Hi"), say("assistant", "Hello! How can I help?"), say("user", "Count to 3.")],
    [say("system", "Be brief."), say("user", "  padded \n"), say("assistant", "\ttabs\t"),
     say("user", "\n\nnew lines\n")],
    [say("user", "Grüße, 世界 🌍 \"quoted\" 'single' \\n {{ not a variable }} <|im_end|> </s> & <b>")],
    [say("user", ""), say("assistant", "")],
]

# name -> template, bos_token, eos_token
TEMPLATES = {
    "chatml": (CHATML, "<|im_start|>", "<|im_end|>"),
    "chatml dotted": (CHATML_DOTTED, "<|im_start|>", "<|im_end|>"),
    "llama2": (LLAMA2, "<s>", "</s>"),
    "llama3": (LLAMA3, "<|begin_of_text|>", "<|eot_id|>"),
    "gemma": (GEMMA, "<bos>", "<eos>"),
    "zephyr": (ZEPHYR, "<s>", "</s>"),
    "phi": (PHI, "<s>", "<|endoftext|>"),
    "vicuna": (VICUNA, "<s>", "</s>"),
    "numbered": (NUMBERED, "<s>", "</s>"),
}


def template_lines(smollm2):
    """One object for each template, chat and value of add_generation_prompt (true for every chat, false for some)."""
    smollm2_form = (smollm2.chat_template, smollm2.bos_token, smollm2.eos_token)
    for template, bos, eos in [smollm2_form, *TEMPLATES.values()]:
        for index, chat in enumerate(CHATS):
            for generate in (True, False) if index in (2, 5) else (True,):
                rendered, _ = render_jinja_template([chat], chat_template=template, add_generation_prompt=generate,
                                                    bos_token=bos, eos_token=eos)
                yield {"template": template, "messages": chat, "add_generation_prompt": generate, "bos_token": bos,
                       "eos_token": eos, "expected": rendered[0]}
