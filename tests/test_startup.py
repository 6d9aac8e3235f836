"""What is loaded when: no text command and no `--help` loads torch, the rest where it is needed.

Each question is asked in a fresh interpreter.
"""

import importlib
import json
import os
import subprocess
import sys
import tomllib

import pytest

from tests.cli.helpers import ROOT, environment, run

SCRIPTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
HEAVY = {"torch", "numpy", "numba", "jieba", "rjieba", "sentencepiece", "sacrebleu", "rich"}
# Parts of the standard library that take longer than a command's own start.
SLOW = {"multiprocessing", "tempfile", "asyncio", "unittest", "http", "email", "logging"}

RUN = """
import json, sys
def loaded():
    return sorted({name.partition(".")[0] for name in sys.modules})
module, sys.argv[:] = sys.argv[1], sys.argv[2:]
main = __import__(module, fromlist=["main"]).main
at_import = loaded()
try:
    main()
finally:
    with open(3, "w") as answer:
        json.dump([at_import, loaded()], answer)
"""


def modules(program, *arguments, stdin=b"", cwd=None):
    """What is loaded after the import of the command, and after its run."""
    script = f"import os; os.dup2(int(os.environ['ANSWER']), 3)\n{RUN}"
    read, write = os.pipe()
    try:
        done = subprocess.run(
            [sys.executable, "-c", script, SCRIPTS[program].partition(":")[0], program, *arguments],
            input=stdin, capture_output=True, pass_fds=[write], cwd=cwd, check=False,
            env=environment(ANSWER=str(write), PYTHONPATH=str(ROOT)),
        )  # fmt: skip
    finally:
        os.close(write)
    with open(read) as answer:
        at_import, at_end = json.load(answer)
    return done, set(at_import), set(at_end)


def kinds():
    for program, target in SCRIPTS.items():
        cli = importlib.import_module(target.partition(":")[0]).cli
        yield from ((program, kind) for kind in cli.commands)


@pytest.mark.parametrize("program", SCRIPTS)
def test_the_import_of_a_command_and_its_help_load_little(program):
    done, at_import, at_end = modules(program, "--help")
    assert done.returncode == 0
    assert done.stdout.startswith(b"Usage: ")
    assert not at_import & HEAVY
    assert not at_import & SLOW
    assert not at_end & HEAVY


@pytest.mark.parametrize(("program", "kind"), [*kinds()])
def test_the_help_of_a_kind_loads_little(program, kind):
    done, _, at_end = modules(program, kind, "--help")
    assert done.returncode == 0
    assert not at_end & HEAVY


TEXT = b'{"id":1,"text":"a b","tokens":["a","b"],"src_tokens":["a"],"tgt_tokens":["b"],"ids":[4]}\n'
ATTENTION = b'{"attention":{"rows":["a"],"columns":["b"],"cross":[[[[1.0]]]]}}\n'
SCORED = b'{"logprob":-1.5,"n_tokens":3}\n'
VOCABULARY = """
{"id":0,"token":"<pad>","special":"pad"}
{"id":1,"token":"<unk>","special":"unk"}
{"id":2,"token":"<s>","special":"bos"}
{"id":3,"token":"</s>","special":"eos"}
{"id":4,"token":"a","count":1}
"""
ARPA = """
\\data\\
ngram 1=4

\\1-grams:
-99\t<s>
-0.5\t<unk>
-0.5\t</s>
-0.5\ta

\\end\\
"""


def learn(path):
    """A model of subwords."""
    command = ("--size", "99", "--soft-size", "-o", str(path), "--quiet")
    assert run("seq-vocab", "subword", *command, stdin=TEXT).status == 0


@pytest.mark.parametrize(
    ("arguments", "stdin", "needs"),
    [
        ("seq-convert text", b"a\n", ""),
        ("seq-convert tsv --columns a", b"a\n", ""),
        ("seq-convert text --reverse", TEXT, ""),
        ("seq-convert conll --columns tokens,tags --scheme iob1:iob2", b"a I-X\n", ""),
        ("seq-convert conll --format conllu --reverse", b'{"tokens":["a"]}\n', ""),
        ("seq-convert fasttext", b"__label__a b\n", ""),
        ("seq-convert csv --header", b'a\n"b"\n', ""),
        ("seq-convert text --encoding gb18030", b"a\n", ""),
        ("seq-tokenize whitespace", TEXT, ""),
        ("seq-tokenize word", TEXT, ""),
        ("seq-tokenize char", TEXT, ""),
        ("seq-tokenize byte", TEXT, ""),
        ("seq-tokenize whitespace --reverse", TEXT, ""),
        ("seq-tokenize jieba", TEXT, "jieba rjieba"),
        ("seq-tokenize sentencepiece --subword-model m", TEXT, "sentencepiece"),
        ("seq-vocab build", TEXT, ""),
        ("seq-vocab build --subword-model m", b"", ""),
        ("seq-vocab coverage", TEXT, ""),
        ("seq-vocab merge v v", b"", ""),
        ("seq-vocab subword --size 99 --soft-size -o -", TEXT, "sentencepiece"),
        ("seq-vocab encode --vocab v", TEXT, ""),
        ("seq-vocab decode --vocab v", TEXT, ""),
        ("seq-augment swap", TEXT, ""),
        ("seq-augment delete", TEXT, ""),
        ("seq-augment insert --vocab v", TEXT, ""),
        ("seq-augment synonym --synonyms s", TEXT, ""),
        ("seq-augment pipe --command cat", TEXT, ""),
        ("seq-stats lengths", TEXT, ""),
        ("seq-stats tokens --partial", TEXT, ""),
        ("seq-stats labels --field tokens", TEXT, ""),
        ("seq-stats lengths --table", TEXT, "rich"),
        ("seq-stats quality --partial", TEXT, ""),
        ("seq-stats quality --near-duplicates 0.8", TEXT, "numpy"),
        ("seq-stats keywords", TEXT, ""),
        ("seq-stats keywords --method textrank --corpus --min-length 1", TEXT, ""),
        ("seq-stats idf", TEXT, ""),
        ("seq-ngram extract --order 2", TEXT, ""),
        ("seq-ngram count --order 2 --report r --heldout h", TEXT, "numpy numba"),
        ("seq-ngram merge", b'{"ngram":["a"],"count":1}\n', "numpy numba"),
        ("seq-ngram train --order 1 --smoothing witten-bell -o -", TEXT, "numpy numba"),
        ("seq-ngram score --model a", TEXT, "numpy numba"),
        ("seq-ngram convert a", b"", "numpy numba"),
        ("seq-ngram check --model a --tolerance 1", b"", "numpy numba"),
        ("seq-batch lm --vocab v --sampling records", TEXT, "numpy"),
        ("seq-batch seq2seq --vocab v", TEXT, "numpy"),
        ("seq-eval exact --hypothesis text --reference text", TEXT, ""),
        ("seq-eval bleu --hypothesis text --reference text", TEXT, "sacrebleu numpy"),
        ("seq-eval chrf --hypothesis text --reference text", TEXT, "sacrebleu numpy"),
        ("seq-eval perplexity", SCORED, ""),
        ("seq-attnviz terminal", ATTENTION, "rich"),
        ("seq-attnviz html", ATTENTION, ""),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_run_loads_what_it_needs(arguments, stdin, needs, tmp_path):
    (tmp_path / "v").write_text(VOCABULARY)
    (tmp_path / "a").write_text(ARPA)
    (tmp_path / "h").write_bytes(TEXT)
    (tmp_path / "s").write_text("a b")
    if "--subword-model m" in arguments:
        learn(tmp_path / "m")
    program, *rest = arguments.split()
    done, _, at_end = modules(program, *rest, stdin=stdin, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert at_end & HEAVY <= set(needs.split())
    if not needs:
        assert not at_end & SLOW


def test_torch_is_loaded_only_after_a_record_proved_valid(tmp_path):
    (tmp_path / "a").write_text(ARPA)
    for arguments in (
        ("seq-train", "lstm", "-o", str(tmp_path / "m")),
        ("seq-decode", "evaluate", "--model", str(tmp_path / "m")),
        ("seq-ngram", "sample", "--model", str(tmp_path / "a")),
    ):
        done, _, at_end = modules(*arguments, stdin=b'{"seqtools":"no batches"}\n')
        assert done.returncode in (1, 2)
        assert b"Traceback" not in done.stderr
        assert "torch" not in at_end


def test_sampling_new_records_reads_nothing_and_loads_torch(tmp_path):
    (tmp_path / "a").write_text(ARPA)
    sample = ("seq-ngram", "sample", "--model", str(tmp_path / "a"), "--count", "1")
    done, _, at_end = modules(*sample, stdin=b"no record\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert at_end & HEAVY == {"numpy", "numba", "torch"}


def test_the_package_itself_loads_nothing():
    script = "import sys, seqtools; print([m for m in sys.modules if m.startswith('seqtools')])"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout == "['seqtools']\n"
