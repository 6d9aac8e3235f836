"""Beam search of a Transformer: against itself without a cache, and against CTranslate2.

The model has 3 + 3 layers of 256, 4 heads, an inner size of 1024, vocabularies of 8,000, and random
weights; 64 sources of 20 tokens are translated at a time by a beam of 5, to a length that is the
same for all. CTranslate2, where it is installed, gets the same weights in float32; that it finds
the same translations is checked first. One thread each, in this process, model loaded.
"""

import importlib.util
import pathlib
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import Any

from tests.bench.measure import compare, row

ROWS, BEAM, SOURCE, VOCABULARY = 64, 5, 20, 8000
BOS, EOS = 2, 3


def measure(folder: pathlib.Path) -> None:
    """Write the rows of the table."""
    import torch

    from seqtools.nn.runtime import quicken_cpu

    torch.set_num_threads(1)
    quicken_cpu()
    model = make_model()
    sources = torch.randint(4, VOCABULARY, (ROWS, SOURCE)).tolist()

    def ours(length: int, stepper: Any = model) -> float:
        return per_second(length, lambda: search(stepper, sources, length))

    for length, aim in ((30, "-"), (50, "≥ 5")):
        result = compare(lambda n=length: ours(n), lambda n=length: ours(n, Uncached(model)), 3)
        row(f"beam {BEAM}, {length} tokens / without a cache", aim, result, "tokens/s")
    if importlib.util.find_spec("ctranslate2") is None:
        print("CTranslate2 is not installed: no figure beside it", file=sys.stderr)
        return
    translator = Translator(model, folder)
    for one, other in zip(search(model, sources, 30), translator.search(sources, 30), strict=True):
        if one != other:
            raise SystemExit("CTranslate2 gives another translation: the weights differ")
    for length, aim in ((30, "≥ 0.8"), (50, "-")):
        result = compare(
            lambda n=length: ours(n),
            lambda n=length: per_second(n, lambda: translator.search(sources, n)),
            5,
        )
        row(f"beam {BEAM}, {length} tokens / CTranslate2", aim, result, "tokens/s")


def per_second(length: int, work: Any) -> float:
    """Tokens of the best hypotheses a second."""
    start = time.perf_counter()
    work()
    return ROWS * length / (time.perf_counter() - start)


def make_model() -> Any:
    """Random weights, so scaled that the beams do not fall together at once."""
    import torch

    from seqtools.models.transformer_seq2seq import TransformerSeq2Seq, TransformerSeq2SeqConfig

    torch.manual_seed(1)
    config = TransformerSeq2SeqConfig(
        layers=3, hidden=256, heads=4, feedforward=1024, activation="relu", tied=False
    )
    model = TransformerSeq2Seq(config, VOCABULARY, VOCABULARY, seed=1).eval()
    with torch.no_grad():
        model.decoder.output.weight.mul_(3.0)
    return model


def search(stepper: Any, sources: list[list[int]], length: int) -> list[list[int]]:
    """The best translation of each source; none ends before `length` tokens."""
    from seqtools.decoding.beam import beam
    from seqtools.decoding.constraints import Constraints
    from seqtools.decoding.hypothesis import Prompts

    prompts = Prompts.from_ids([[BOS]] * len(sources), sources)
    constraints = Constraints(None, [length] * len(sources), [EOS])
    return [found[0].ids for found in beam(stepper, prompts, constraints, width=BEAM)]


@dataclass
class Uncached:
    """The model read from the first token on at every step, as a Stepper."""

    model: Any

    @property
    def vocabulary_size(self) -> int:
        """Of the target."""
        return int(self.model.vocabulary_size)

    def start(
        self,
        source: Any,
        source_lengths: Any,
        prefix: Any,
        lengths: Any,
        *,
        attention: bool = False,
    ) -> Any:
        """The source taken in, and no token."""
        return self.model._encode(source, source_lengths), prefix[:, :0]

    def attended(self, state: Any) -> dict[str, Any]:
        """Nothing."""
        return {}

    def step(self, last_ids: Any, state: Any) -> Any:
        """Read all there is again."""
        import torch

        source, fed = state
        fed = torch.cat((fed, last_ids[:, None]), 1)
        readout = self.model.decoder.read(fed, source.sources, source.mask)[:, -1]
        return self.model.decoder.output(readout), (source, fed), None

    def select(self, state: Any, rows: Any) -> Any:
        """The sources stay as they are: all records stay to the end, with all their rows."""
        source, fed = state
        return source, fed[rows]


class Translator:
    """The model converted for CTranslate2, in float32."""

    def __init__(self, model: Any, folder: pathlib.Path) -> None:
        import ctranslate2

        with tempfile.TemporaryDirectory(dir=folder) as path:
            spec = convert(model)
            spec.validate()
            spec.save(path)
            self._translator = ctranslate2.Translator(
                path, device="cpu", compute_type="float32", inter_threads=1, intra_threads=1
            )

    def search(self, sources: list[list[int]], length: int) -> list[list[int]]:
        """The best translation of each source."""
        found = self._translator.translate_batch(
            [[_name(number) for number in source] for source in sources],
            beam_size=BEAM,
            min_decoding_length=length,
            max_decoding_length=length,
            length_penalty=0,
            max_batch_size=ROWS,
            suppress_sequences=[["</s>"]],
        )
        return [[int(token[1:]) for token in one.hypotheses[0]] for one in found]


def _name(number: int) -> str:
    return {0: "<pad>", 1: "<unk>", BOS: "<s>", EOS: "</s>"}.get(number, f"w{number}")


def convert(model: Any) -> Any:
    """The weights as CTranslate2's specification of an encoder-decoder, norms before."""
    import ctranslate2
    import torch
    from ctranslate2.specs import common_spec, transformer_spec

    config = model.config
    spec = transformer_spec.TransformerSpec.from_config(
        (config.layers, config.decoder_layers),
        config.heads,
        pre_norm=True,
        activation=common_spec.Activation.RELU,
    )
    names = [_name(number) for number in range(VOCABULARY)]
    spec.register_source_vocabulary(names)
    spec.register_target_vocabulary(names)
    spec.config.add_source_eos = False

    def array(tensor: Any) -> Any:
        return tensor.detach().numpy().copy()

    def linear(target: Any, *sources: Any) -> None:
        target.weight = array(torch.cat([module.weight for module in sources]))
        target.bias = array(torch.cat([module.bias for module in sources]))

    def norm(target: Any, source: Any) -> None:
        target.gamma, target.beta = array(source.weight), array(source.bias)

    waves = model.source.positions(torch.zeros(1, 512, config.hidden), torch.arange(512))[0]
    pairs = ((spec.encoder, model.encoder, model.source),
             (spec.decoder, model.decoder.stack, model.decoder.embedded))  # fmt: skip
    for side, stack, embedded in pairs:
        table = side.embeddings[0] if isinstance(side.embeddings, list) else side.embeddings
        table.weight = array(embedded.embedding.weight)
        side.scale_embeddings = False
        side.position_encodings.encodings = array(waves)
        norm(side.layer_norm, stack.last_norm)
        for target, layer in zip(side.layer, stack.layers, strict=True):
            linear(target.self_attention.linear[0], layer.own.query, layer.own.key_value)
            linear(target.self_attention.linear[1], layer.own.output)
            norm(target.self_attention.layer_norm, layer.own_norm)
            linear(target.ffn.linear_0, layer.feedforward.inner)
            linear(target.ffn.linear_1, layer.feedforward.output)
            norm(target.ffn.layer_norm, layer.feedforward_norm)
            if layer.cross is not None:
                linear(target.attention.linear[0], layer.cross.query)
                linear(target.attention.linear[1], layer.cross.key_value)
                linear(target.attention.linear[2], layer.cross.output)
                norm(target.attention.layer_norm, layer.cross_norm)
    linear(spec.decoder.projection, model.decoder.output)
    assert ctranslate2.__version__
    return spec
