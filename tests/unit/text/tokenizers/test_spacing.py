import pytest

from seqtools.text.tokenizers.spacing import join_words
from seqtools.text.tokenizers.word import WordTokenizer

SENTENCES = [
    "",
    "Hello, world!",
    'Two dogs run; one (the brown one) barks: "Woof!"',
    'She said "yes", then "no".',
    "It's a well-known T-shirt, isn't it?",
    "The students' books and the dogs' bowls.",
    "'Tis the '90s.",
    "He called it 'a good idea' and left.",
    "Prices rose 3.14% to $1,000.50 at 12:30.",
    "It was -5°C outside -- very cold...",
    "AT&T, Q&A and R & D.",
    "The U.S. team (e.g. Smith) won 3-2 in 1914–1918.",
    "Wait... what?! No way!!!",
    "and/or, C++ and C#",
    "See #1 at $5 [sic] {or} 50%.",
    "Write to me@home.org or see example.com.",
    "“Curly quotes,” she wrote, ‘inside’ too.",
    "Inc.'s shares and \"X\"'s fate.",
    "Ein Mann, der ein T-Shirt trägt, geht über die Straße.",
    "Er sagte: „Das ist gut“, und ging.",
    "Obst- und Gemüsestand; auf- oder absteigen.",
    "Die »Zeit« und «Le Monde» kosten z. B. 5 € am Tag.",
    "Ein „Car Wash“-Schild am Rand.",
    "Er ging – ohne zu zögern – weiter.",
    "Rot-, Gelb- und Blautöne.",
    "L'homme s'appelle Jean-Pierre.",
    "我爱北京天安门。",
    "他说：“你好，世界！”她笑了。",
    "《红楼梦》（清）——曹雪芹著……",
    "我用C++写node.js程序，圆周率是3.14，占比23.4%。",
    "“电话响了。”“我去接。”",
    "東京タワーへ行きました。",
    "The word 中 means middle.",
    "हिन्दी में, ไทยแลนด์ 👍🏽",
]


@pytest.mark.parametrize("text", SENTENCES)
def test_ordinary_sentences_come_back(text: str) -> None:
    assert join_words(WordTokenizer().tokenize(text)) == text


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (["a", "<unk>", "b"], "a <unk> b"),
        (["do", "n't", "!"], "do n't!"),
        (["John", "'s", "dog"], "John's dog"),
        (["``", "yes", "''", "."], "``yes''."),
        (["it", "is", "5", '"', "long"], 'it is 5" long'),
        (["the", "boys", "'"], "the boys'"),
        ([""], ""),
        (['"'], '"'),
        (["'"], "'"),
        (["(", ")"], "()"),
        (["你", "好", "Windows", "10", "吗"], "你好Windows 10吗"),
    ],
)
def test_tokens_that_come_from_elsewhere(tokens: list[str], text: str) -> None:
    assert join_words(tokens) == text


def test_many_quotations_take_no_longer_than_they_are_many() -> None:
    many = 60_000  # would take minutes if each looked at all the others
    assert join_words(["«", "a"] * many) == " ".join(["«a"] * many)
    assert join_words(["«"] * many + ["»"] * many) == "«" * many + "»" * many
    ends = ["«", "„"] * many + ["a", "»"]  # a mark closes those within, too
    assert join_words([*ends, "”"]) == "«„" * many + "a»”"


def test_the_bleu_of_text_that_went_through_is_that_of_the_text() -> None:
    from sacrebleu.metrics import BLEU

    # Every sentence against itself: its own tokens must survive sacrebleu's 13a.
    western = [text for text in SENTENCES if text.isascii() or "ß" in text]
    there_and_back = [join_words(WordTokenizer().tokenize(text)) for text in western]
    assert BLEU().corpus_score(there_and_back, [western]).score == pytest.approx(100)
