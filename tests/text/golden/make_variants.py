"""Makes variants.jsonl: small tokenizers that differ in one setting each, and what the tokenizers library makes of texts.

Usage, with `pip install tokenizers==0.23.3`: python3 make_variants.py [SEED] [TEXTS_PER_VARIANT] > variants.jsonl
One object a line: {"name", "tokenizer" (the tokenizer.json), "cases": [{"text", "ids", "plain", "decoded"}]}; "plain" are
the ids with special tokens in the text read as text, and is left out where that makes no difference; so is "decoded" where it is the text.
"""
import json
import random
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK = r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""
BLOOM = r" ?[^(\s|[.,!?…。，、।۔،])]+"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
          r"\s+(?!\S)|\s+")

ALPHABET = sorted(pre_tokenizers.ByteLevel.alphabet())
MERGES = [pair.split(" ") for pair in
          ["Ġ t", "h e", "Ġt he", "i n", "Ġ a", "r e", "o n", "e r", "1 2", "12 3", "Ġ Ġ", "ĠĠ ĠĠ", "a b", "ab c", "b c", "a a",
           "aa aa", "Ã ©", "l l", "' s", "Ċ Ċ", "x y", "< s", "s >", "à ¸", "à¸ Ģ", "c d", "ab cd", "e l", "el l", "Ġ 1", "s t", "3 4", "1 2"]]


def byte_level(prefix=False, regex=True):
    return pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=regex)


def split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(pattern, behavior, invert), byte_level(regex=False)])


def make(pre_tokenizer, missing="", **model):
    symbols = [symbol for symbol in ALPHABET if symbol not in missing]
    merges = [(a, b) for a, b in MERGES if not set(a + b) & set(missing)]
    vocabulary = {}
    for token in symbols + [a + b for a, b in merges] + (["<unk>"] if "unk_token" in model else []):
        vocabulary.setdefault(token, len(vocabulary))
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, **model))
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken("<s>", normalized=False), AddedToken("</s>", normalized=False)])
    return tokenizer


def variants():
    yield "gpt2", make(byte_level())
    yield "prefix space", make(byte_level(prefix=True))
    yield "no pattern", make(byte_level(regex=False))
    yield "digits together", make(pre_tokenizers.Sequence([pre_tokenizers.Digits(False), byte_level()]))
    yield "digits alone", make(pre_tokenizers.Sequence([pre_tokenizers.Digits(True), byte_level(prefix=True)]))
    for behavior in ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"):
        yield "split " + behavior, make(split(Regex(r"\s|l+"), behavior))
        yield "split inverted " + behavior, make(split(Regex(r"\p{L}+"), behavior, True))
    yield "split string", make(split(" a.b", "merged_with_next"))
    yield "split empty matches", make(split(Regex(r"x*"), "isolated"))
    yield "split lines", make(split(Regex(r"^a|b$|(?<=é).|(?>1+)|\u00e9?+|[\d\-x]{2,}"), "isolated"))
    yield "llama3", make(split(Regex(LLAMA3)), ignore_merges=True)
    yield "o200k", make(split(Regex(O200K)))
    yield "bloom", make(split(Regex(BLOOM)))
    yield "deepseek", make(pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"\p{N}{1,3}"), "isolated"),
        pre_tokenizers.Split(Regex("[一-龥\u3040-ゟ゠-ヿ]+"), "isolated"),
        pre_tokenizers.Split(Regex(DEEPSEEK), "isolated"), byte_level(regex=False)]))
    yield "dropped bytes", make(byte_level(), missing="bĠÃ")
    yield "unknown", make(byte_level(), missing="bĠÃ", unk_token="<unk>")
    yield "unknown fused", make(byte_level(), missing="bĠÃ", unk_token="<unk>", fuse_unk=True)

    flags = make(byte_level())
    flags.normalizer = normalizers.NFC()
    flags.add_tokens([
        AddedToken("word", single_word=True), AddedToken("é!", normalized=True), AddedToken("e\u0301?", normalized=True), AddedToken("e\u0301;", normalized=False),
        AddedToken("<l>", lstrip=True, special=True, normalized=False), AddedToken("<r>", rstrip=True), AddedToken("<b>", lstrip=True, rstrip=True, normalized=False),
        AddedToken("ab"), AddedToken("abcd"), AddedToken("\n\n"), AddedToken(" "*4, normalized=False), AddedToken("ł")])
    yield "added tokens", flags

    roberta = make(byte_level(prefix=True))
    roberta.post_processor = processors.RobertaProcessing(("</s>", roberta.token_to_id("</s>")), ("<s>", roberta.token_to_id("<s>")))
    yield "roberta", roberta
    both = make(byte_level())
    template = processors.TemplateProcessing(single="<s> $A </s>", pair="$A $B", special_tokens=[("<s>", both.token_to_id("<s>")), ("</s>", both.token_to_id("</s>"))])
    both.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), template])
    yield "template", both


PIECES = ["the", " the", "abcd", "abc", "aaaaa", "ab", "hello", "all", "word", "words", "sword", "word.", " ", "  ", "    ", "     ", "\n", "\n\n", "\n\n\n", "\r\n",
          "\t", "\u00a0", "\u3000", "\u180e", "\x85", "\u2028", "1", "12", "1234", "½", "²", "٣", "Ⅷ", "é", "e\u0301", "é!", "e\u0301!", "e\u0301?", "é?", "e\u0301;", "é;", "ł", "'s", "'S", "'ſ", "'LL", "ﬁ", "Ａ", "ǅ", "ʰ",
          "กา", "नमस्ते", "你好", "カタカナ", "안녕", "👩‍👩‍👧", "ß", "ẞ", "x", "xx", "x-1", "a.b", " a.b", "<s>", "</s>", "<l>", "<r>", "<b>", "<s", "…", "。", "(", "|", "[", ")", "_", "-", "$", "€", "\x00", "\x1c", "\u200d",
          "\U00010d4a", "\U0001e5f1", "\U00011de3", "\U000323af", "\U0001fae9", "\u0897", "\U00010d6e", "\ue000", "\U0010ffff"]


def text(random_source):
    pieces = [random_source.choice(PIECES) for _ in range(random_source.randrange(0, 9))]
    if random_source.random() < 0.2:
        pieces.append(chr(random_source.choice([random_source.randrange(0x20, 0x3000), random_source.randrange(0xe000, 0x20000)])))
    if random_source.random() < 0.02:
        pieces.append(random_source.choice(["a", "ab", " ", "1", "é"]) * random_source.randrange(40, 200))
    return "".join(pieces)


def main():
    source = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 30
    for name, tokenizer in variants():
        document = json.loads(tokenizer.to_str())
        again = Tokenizer.from_str(tokenizer.to_str())
        cases = []
        for _ in range(count):
            case = {"text": text(source)}
            case["ids"] = again.encode(case["text"]).ids
            again.encode_special_tokens = True
            plain = again.encode(case["text"]).ids
            again.encode_special_tokens = False
            decoded = again.decode(case["ids"], skip_special_tokens=False)
            case |= {"plain": plain} if plain != case["ids"] else {}
            case |= {"decoded": decoded} if decoded != case["text"] else {}
            cases.append(case)
        print(json.dumps({"name": name, "tokenizer": document, "cases": cases}, ensure_ascii=False, separators=(",", ":")))


if __name__ == "__main__":
    main()
