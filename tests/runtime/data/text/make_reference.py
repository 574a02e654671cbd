"""Trains small tokenizers with the package `tokenizers`, and writes their ids of made-up lines.

    pip install tokenizers==0.23.3
    python3 make_reference.py tokenizers            # what the test compares with: 60 lines
    python3 make_reference.py /tmp/lines 10000      # the same tokenizers, more lines
    STEPOP_TOKENIZERS=/tmp/lines build/stepop_tests --test-case='*package*'

The tokenizers are trained when the folder has none: others give other ids.
"""
import glob
import json
import os
import random
import sys
import unicodedata

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..", "..", "..")
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
GPT4O = "|".join(
    [
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)
WORDS = (
    "the and of a to in is it's we'll they'VE I'd can't DON'T hello world Training steps naïve café "
    "Straße ΑΒΓ σίγμας привет Ёлка 你好 世界 こんにちは カタカナ 한국어 안녕 नमस्ते สวัสดี مرحبا שלום İstanbul ǅ Ⅷ ½ ² ٣٤٥ "
    "🙂 👍🏽 👩‍👩‍👧‍👦 🇩🇪 ❤️ ① Å ﬁ ſ K 𝒳 𐐀 12345 3.14 1,000 0x1F foo_bar http://a.b/c?d=1 --- ... !? «x» “y” "
    "<|endoftext|> <s> [MASK] e\u0301 o\u0308\u0323 \u1100\u1161\u11a8 \u212b \u1e9b\u0323"
).split()
SPACES = [" "] * 12 + ["  ", "   ", "\t", " \t ", "\u00a0", "\u3000", "\u2003 ", "\r\n", "\n", "\n\n", "\n \n", " \n", ""]
MARKS = ["", "", "", ".", ",", "!", "?!", ":", ";", "'", "\"", ")", "(", "…", "—", "/", "\n"]


def lines(count, seed):
    choose = random.Random(seed)
    known = [chr(c) for c in range(0x20, 0x30000) if unicodedata.category(chr(c)) not in ("Cn", "Cs", "Co")]
    made = ["", " ", "  ", "\n", "a", " a", "a ", "'s", "'S x", "\t\t\tx", "x\n\n\ny", " <|endoftext|> x", "<|endoftext|>"]
    while len(made) < count:
        text = choose.choice(["", "", " ", "  ", "\n"])
        for _ in range(choose.randrange(1, 14)):
            kind = choose.random()
            if kind < 0.1:
                text += "".join(choose.choice(known) for _ in range(choose.randrange(1, 5)))
            elif kind < 0.2:
                text += str(choose.randrange(10 ** choose.randrange(1, 9)))
            else:
                text += choose.choice(WORDS)
            text += choose.choice(MARKS) + choose.choice(SPACES)
        made.append(text)
    return made[:count]


def byte_level(pattern=None, normalizer=None, **how):
    tokenizer = Tokenizer(models.BPE(**how))
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=pattern is None)
    if pattern is not None:
        split = pre_tokenizers.Split(Regex(pattern), behavior="isolated")
        level = pre_tokenizers.Sequence([split, level])
    tokenizer.pre_tokenizer = level
    tokenizer.decoder = decoders.ByteLevel()
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    return tokenizer


def train(corpus):
    made = {}
    bytes_first = pre_tokenizers.ByteLevel.alphabet()

    def trained(name, tokenizer, size, **how):
        how.setdefault("initial_alphabet", bytes_first)
        tokenizer.train_from_iterator(corpus, trainers.BpeTrainer(vocab_size=size, show_progress=False, **how))
        made[name] = tokenizer

    trained("gpt2", byte_level(), 420, special_tokens=["<|endoftext|>"])

    llama3 = byte_level(LLAMA3, ignore_merges=True)
    trained("llama3", llama3, 420, special_tokens=["<|begin_of_text|>", "<|endoftext|>"])
    begin = llama3.token_to_id("<|begin_of_text|>")
    llama3.post_processor = processors.Sequence(
        [
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(
                single="<|begin_of_text|> $A", pair="<|begin_of_text|> $A <|begin_of_text|> $B",
                special_tokens=[("<|begin_of_text|>", begin)],
            ),
        ]
    )

    gpt4o = byte_level(GPT4O, normalizers.NFC())  # with the normalizer of Qwen
    trained("gpt4o", gpt4o, 420, special_tokens=["<|endoftext|>"])
    gpt4o.add_tokens([AddedToken("naïve", normalized=True), AddedToken("hello", single_word=True, lstrip=True)])

    llama2 = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    llama2.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    fallback = [f"<0x{byte:02X}>" for byte in range(256)]
    trained("llama2", llama2, 400, special_tokens=["<unk>", "<s>", "</s>"] + fallback, initial_alphabet=[], limit_alphabet=60)
    llama2.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)])
    llama2.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )

    clip = Tokenizer(models.BPE(unk_token="<|endoftext|>", end_of_word_suffix="</w>"))
    clip.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()])
    words = r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
    clip.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(words), behavior="removed", invert=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    clip.decoder = decoders.BPEDecoder("</w>")
    trained("clip", clip, 700, special_tokens=["<|startoftext|>", "<|endoftext|>"], end_of_word_suffix="</w>")
    ids = {name: clip.token_to_id(name) for name in ("<|startoftext|>", "<|endoftext|>")}
    clip.post_processor = processors.RobertaProcessing(
        ("<|endoftext|>", ids["<|endoftext|>"]), ("<|startoftext|>", ids["<|startoftext|>"]), False, False
    )

    words = Tokenizer(models.BPE(unk_token="[UNK]"))
    words.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.Strip()])
    words.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Whitespace(), pre_tokenizers.Digits(True), pre_tokenizers.Punctuation("isolated")]
    )
    trained("words", words, 300, special_tokens=["[UNK]", "[MASK]"], initial_alphabet=[], limit_alphabet=150, continuing_subword_prefix="##")

    meta = Tokenizer(models.BPE(unk_token="<unk>"))
    meta.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    meta.decoder = decoders.Metaspace(prepend_scheme="first")
    trained("metaspace", meta, 260, special_tokens=["<unk>", "<s>"], initial_alphabet=[], limit_alphabet=100)
    return made


def main(folder, count=60):
    os.makedirs(folder, exist_ok=True)
    stored = os.path.join(HERE, "tokenizers")
    if not glob.glob(os.path.join(stored, "*.tokenizer.json")):
        corpus = [open(os.path.join(ROOT, "README.md")).read()] + lines(300, 1)
        for name, tokenizer in train(corpus).items():
            tokenizer.save(os.path.join(stored, name + ".tokenizer.json"), pretty=False)
            # Some files have merges as texts, as all had before 2024.
            if name in ("gpt2", "clip"):
                path = os.path.join(stored, name + ".tokenizer.json")
                data = json.load(open(path))
                data["model"]["merges"] = [" ".join(pair) for pair in data["model"]["merges"]]
                json.dump(data, open(path, "w"), ensure_ascii=False, separators=(",", ":"))
    texts = lines(int(count), 2)
    expected = {"lines": texts}
    for path in sorted(glob.glob(os.path.join(stored, "*.tokenizer.json"))):
        tokenizer = Tokenizer.from_file(path)
        name = os.path.basename(path)
        if os.path.abspath(folder) != stored:
            open(os.path.join(folder, name), "w").write(open(path).read())
        ids = [tokenizer.encode(text).ids for text in texts]
        expected[name] = {
            "ids": ids,
            "plain": [tokenizer.encode(text, add_special_tokens=False).ids for text in texts],
            "texts": [tokenizer.decode(one, skip_special_tokens=False) for one in ids],
        }
    with open(os.path.join(folder, "expected.json"), "w") as file:
        json.dump(expected, file, ensure_ascii=False, separators=(",", ":"))


main(*sys.argv[1:])
