"""Golden values of tokenizers and chat templates: text/. README.md in this folder describes the files."""

import argparse
import json
import pathlib

import tokenizers
import transformers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from chat_templates import template_lines
from natural_text import SENTENCES
from smollm2_files import published_tokenizer
from text_strings import CODE, varied_strings

LONG_STRINGS = 2000
SHORT_STRINGS = 300
LETTERS_AND_DIGITS = (  # contractions in any case | word with one leading other sign | 1 to 3 digits | signs | spaces
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def write_lines(path, lines):
    """One JSON object a line, UTF-8 as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        for line in lines:
            file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")


def string_lines(strings, encode, decode):
    """{"text", "ids"} and, only where it differs from the text, {"decoded"}."""
    for text in strings:
        ids = encode(text)
        decoded = decode(ids)
        yield {"text": text, "ids": ids} | ({"decoded": decoded} if decoded != text else {})


def smollm2_lines(seed):
    tokenizer = published_tokenizer()
    special = list(tokenizer.get_added_vocab())
    lines = list(string_lines(
        varied_strings(seed, LONG_STRINGS, special),
        lambda text: tokenizer(text).input_ids,  # parses added tokens in the text, as HF does unless told otherwise
        lambda ids: tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)))
    changed = sum("decoded" in line for line in lines)
    assert len({line["text"] for line in lines}) == LONG_STRINGS
    print(f"text: {len(lines)} strings, {sum(len(line['ids']) for line in lines)} ids, "
          f"{changed} not restored by decoding")
    return lines


def added_tokens():
    return [
        AddedToken("<s>", special=True, normalized=False),
        AddedToken("</s>", special=True, normalized=False),
        AddedToken("<mask>", special=True, normalized=False, lstrip=True),
        AddedToken("<cut>", special=True, normalized=False, rstrip=True),
        AddedToken("<sep>", special=True, normalized=False, lstrip=True, rstrip=True),
        AddedToken("<sepia>", special=False, normalized=False),  # starts like another one
        AddedToken("==>", special=False, normalized=False),
    ]


def gpt2_like():
    """GPT-2's pattern, no normaliser, nothing added around a text."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def llama3_like():
    """A pattern of its own before the bytes, NFC, and <s> put before every text."""
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(LETTERS_AND_DIGITS), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def trained(tokenizer, vocabulary):
    """Trains the merges on the sentences and the code of these tests; all 256 bytes are in the vocabulary."""
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, min_frequency=2, show_progress=False, special_tokens=added_tokens()[:2],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    corpus = [sentence for sentences in SENTENCES.values() for sentence in sentences] + CODE
    tokenizer.train_from_iterator(corpus, trainer)
    for token in added_tokens()[2:]:
        (tokenizer.add_special_tokens if token.special else tokenizer.add_tokens)([token])
    return tokenizer


def write_tiny(folder, tokenizer, seed):
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    again = Tokenizer.from_file(str(folder / "tokenizer.json"))
    special = [token.content for token in again.get_added_tokens_decoder().values()]
    lines = list(string_lines(varied_strings(seed, SHORT_STRINGS, special), lambda text: again.encode(text).ids,
                              lambda ids: again.decode(ids, skip_special_tokens=False)))
    write_lines(folder / "strings.jsonl", lines)
    print(f"text: {folder.name}: {again.get_vocab_size()} tokens, {sum(len(line['ids']) for line in lines)} ids")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent)
    arguments = parser.parse_args()
    transformers.utils.logging.set_verbosity_error()
    out = arguments.out / "text"
    write_lines(out / "smollm2_strings.jsonl", smollm2_lines(arguments.seed))
    write_tiny(out / "tiny", trained(gpt2_like(), 600), arguments.seed + 1)
    llama3 = trained(llama3_like(), 700)
    llama3.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", llama3.token_to_id("<s>"))])
    write_tiny(out / "tiny_split", llama3, arguments.seed + 2)
    lines = list(template_lines(published_tokenizer()))
    write_lines(out / "chat_templates.jsonl", lines)
    print(f"text: {len(lines)} rendered chats; tokenizers {tokenizers.__version__}")


if __name__ == "__main__":
    main()
