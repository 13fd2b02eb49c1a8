"""tokenizer.py SKIPPIPE-MODEL FOLDER MEGABYTES: trains tokenizers of every supported kind and compares their tokens."""
import glob
import json
import random
import subprocess
import sys

import numpy
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

program, work, size = sys.argv[1], sys.argv[2], int(float(sys.argv[3]) * 1e6)
random.seed(7)

SCRIPTS = [(0x21, 0x7E), (0xC0, 0x17F), (0x300, 0x36F), (0x370, 0x3FF), (0x400, 0x4FF), (0x5D0, 0x5EA), (0x600, 0x6FF),
           (0x900, 0x97F), (0xE00, 0xE7F), (0x1100, 0x11FF), (0x2000, 0x206F), (0x2150, 0x218B), (0x3040, 0x30FF),
           (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0x1D400, 0x1D7FF), (0x1F300, 0x1FAFF), (0x2EBF0, 0x2EE5D)]
SPACES = [" ", "  ", "\n", "\r\n", "\t", " \n", "\n\n", "\u3000", "\u00a0", "\u2029", "\u0085", "   ", "\r", "\u180e", "\ufeff"]
WORDS = ["'s", "'RE", "'Ll", "'\u017f", "'x", "!", "...", "\u3002", "<|", "<", "e\u0301", "\ufb01", "$$", "#!/", "</s>",
         "<|endoftext|>", "<|im_start|>", "\U0001f937\U0001f3fd\u200d\u2640\ufe0f", "\U0001f468\u200d\U0001f469\u200d\U0001f467"]


def characters(low, high, most):
    return "".join(chr(random.randint(low, high)) for _ in range(random.randrange(1, most)))


def mixed(words):
    parts, script = [], random.choice(SCRIPTS)
    for _ in range(words):
        kind = random.random()
        if kind < 0.1:
            script = random.choice(SCRIPTS)
        if kind < 0.7:
            parts.append(characters(*script, 9))
        elif kind < 0.8:
            parts.append(str(random.randrange(10 ** random.randrange(1, 9))))
        else:
            parts.append(random.choice(WORDS))
        parts.append(random.choice(SPACES) if random.random() < 0.7 else "")
    return "".join(parts)


def any_characters(n):
    ranges = [(0x20, 0x2FFF), (1, 0xD7FF), (0xE000, 0x10FFFF)]
    return "".join(chr(random.randint(*random.choice(ranges))) for _ in range(n))


def make_text():
    """Code and English of this repository, mixed scripts, and any characters at all."""
    files = [open(path, encoding="utf-8").read() for path in glob.glob("*/**/*.[ch]", recursive=True) + glob.glob("docs/*.md")]
    parts, total = [], 0
    while total < size:
        kind = random.random()
        if kind < 0.6:
            text = random.choice(files)
            at = random.randrange(max(1, len(text) - 2000))
            part = text[at:at + random.randrange(200, 2000)]
        else:
            part = mixed(random.randrange(5, 80)) if kind < 0.95 else any_characters(100)
        parts.append(part)
        total += len(part.encode())
    return "".join(parts)


LATER = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?LETTERS+|NUMBERS| ?OTHERS+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def later(letters, numbers, others):
    return LATER.replace("LETTERS", letters).replace("NUMBERS", numbers).replace("OTHERS", others)


REGEX = {
    "llama3": later(r"\p{L}", r"\p{N}{1,3}", r"[^\s\p{L}\p{N}]"),
    "qwen2": later(r"\p{L}", r"\p{N}", r"[^\s\p{L}\p{N}]"),
    "qwen3.5": later(r"[\p{L}\p{M}]", r"\p{N}", r"[^\s\p{L}\p{M}\p{N}]"),
}


def pre_tokenizer(kind):
    bytes_after = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    if kind in REGEX:
        return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(REGEX[kind]), "isolated"), bytes_after])
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=kind == "roberta")
    if kind == "smollm":
        return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level])
    return byte_level


def make_tokenizer(kind, text):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizer(kind)
    t.decoder = decoders.ByteLevel()
    if kind.startswith("qwen"):
        t.normalizer = normalizers.NFC()
    # More than 65,536 tokens need shards of 32 bits.
    trainer = trainers.BpeTrainer(vocab_size=70000 if kind == "llama3" else 8000, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    t.train_from_iterator([text[i:i + 5000] for i in range(0, len(text), 15000)], trainer)
    if kind == "llama3":
        while t.get_vocab_size() < 66000:  # a short text gives fewer merges
            t.add_tokens([f"<unused{i}>" for i in range(t.get_vocab_size(), 66000)])
        t.add_special_tokens(["<|begin_of_text|>", "<|im_start|>"])
        t.post_processor = processors.TemplateProcessing(
            single="<|begin_of_text|> $A", special_tokens=[("<|begin_of_text|>", t.token_to_id("<|begin_of_text|>"))])
        saved = json.loads(t.to_str())
        saved["model"]["ignore_merges"] = True
        return Tokenizer.from_str(json.dumps(saved))
    t.add_special_tokens(["<|endoftext|>", "<|im_start|>", AddedToken("</s>", lstrip=kind == "roberta", rstrip=kind == "gpt2")])
    t.add_tokens([AddedToken("e\u0301", normalized=True)])
    return t


def tokenize(tokenizer, text):
    subprocess.run([program, "tokenize", "--tokenizer", tokenizer, "--out", work + "/out.bin", "--force", "--corpus", text],
                   check=True, stdout=subprocess.DEVNULL)
    magic = numpy.fromfile(work + "/out.bin", dtype="<u4", count=1)[0]
    return numpy.fromfile(work + "/out.bin", dtype="<u2" if magic == 20240520 else "<u4", offset=1024)


def compare(kind, ours, theirs):
    n = min(len(ours), len(theirs))
    differ = numpy.nonzero(ours[:n] != theirs[:n])[0]
    if len(ours) != len(theirs) or len(differ):
        at = differ[0] if len(differ) else n
        sys.exit(f"{kind}: {len(ours)} tokens, expected {len(theirs)}; from {at} on {ours[at:at + 5]}, expected {theirs[at:at + 5]}")
    print(f"{kind}: {n} tokens are the same")


def compare_pieces(text):
    """Compares a text that skippipe encodes in parts with the whole text. A part must end where a piece of the whole
    text ends, and only the first part may get the space that these models put before a text."""
    try:
        import sentencepiece
    except ImportError:
        print("sentencepiece cannot be imported: its part was left out")
        return
    for kind in "bpe", "unigram":
        lines = [line for line in text.split("\n")[:20000] if "\0" not in line]
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines), model_prefix=work + "/p", vocab_size=8000, byte_fallback=True, model_type=kind,
            character_coverage=0.98, minloglevel=2, **(dict(normalization_rule_name="identity", remove_extra_whitespaces=False)
                                                     if kind == "bpe" else {}))
        p = sentencepiece.SentencePieceProcessor(model_file=work + "/p.model")
        # For a long text, the library's sums of likelihoods are too inexact to find the best
        # pieces.
        part = text if kind == "bpe" else text[:50000]
        with open(work + "/part", "w", encoding="utf-8", newline="") as f:
            f.write(part)
        ours = tokenize(work + "/p.model", work + "/part")
        with open(work + "/text.jsonl", "w") as f:  # a document of JSON lines is not cut
            json.dump({"text": part}, f)
        compare(f"sentencepiece {kind}, uncut", ours, tokenize(work + "/p.model", work + "/text.jsonl"))
        # If two segmentations are equally likely, versions of the library differ in which one they
        # choose.
        if kind == "bpe":
            compare(f"sentencepiece {kind}", ours, numpy.array([p.bos_id()] + p.encode(text)))


text = make_text()
with open(work + "/text", "w", encoding="utf-8", newline="") as f:
    f.write(text)
for kind in "gpt2", "llama3", "qwen2", "qwen3.5", "smollm", "roberta":
    t = make_tokenizer(kind, text)
    t.save(work + "/tokenizer.json")
    ours = tokenize(work + "/tokenizer.json", work + "/text")
    begin = t.token_to_id("<|begin_of_text|>" if kind == "llama3" else "<|endoftext|>")
    compare(kind, ours, numpy.array([begin] + t.encode(text, add_special_tokens=False).ids))
compare_pieces(text)
