"""Made-up sentences, so that the example runs without any text: `sentences.py en|zh COUNT SEED`.

A sentence is drawn from a grammar of a dozen rules; of the ways to fill a slot the first is the
likeliest, the second half as likely, the third a third.
"""

import random
import re
import sys

ENGLISH = {
    "S": "NP VP . | NP VP and VP . | TIME , NP VP . | does NP VP ? | NP SAY that NP VP .",
    "NP": "the N | DET N | the A N | NP PP | NAME | DET A A N",
    "VP": "V NP | I | V NP PP | I ADV | I PP",
    "PP": "in NP | near NP | with NP | behind NP",
    "DET": "a | this | every | no | some",
    "N": "dog | cat | woman | man | child | garden | house | river | bird | book | king | tree",
    "A": "small | old | red | quiet | young | tall | strange | wooden",
    "V": "sees | likes | finds | follows | hears | forgets | carries | paints",
    "I": "sleeps | waits | laughs | sings | leaves | falls | dreams",
    "SAY": "says | thinks | believes | doubts",
    "ADV": "quietly | often | today | again | slowly",
    "TIME": "in the morning | at night | today | long ago",
    "NAME": "anna | peter | maria | john",
}
CHINESE = {
    "S": "NP VP 。 | NP VP ， NP VP 。 | TIME ， NP VP 。 | NP VP 吗 ？ | NP SAY NP VP 。",
    "NP": "N | NUM N | A 的 N | NP 的 N | NAME | 这 NUM A 的 N",
    "VP": "V NP | I | PP V NP | ADV I | PP I",
    "PP": "在 N 里 | 在 NP 旁边 | 跟 NP 一起",
    "NUM": "一个 | 两个 | 几个 | 三个",
    "N": "孩子 | 老人 | 花园 | 房子 | 河 | 鸟 | 书 | 船 | 树 | 国王 | 信 | 山 | 月亮 | 朋友",
    "A": "小 | 老 | 红 | 安静 | 年轻 | 高 | 奇怪",
    "V": "看见 | 喜欢 | 找到 | 跟着 | 听见 | 忘记 | 画",
    "I": "睡觉 | 等待 | 笑 | 唱歌 | 离开 | 做梦",
    "SAY": "说 | 想 | 相信 | 不信",
    "ADV": "静静地 | 常常 | 今天 | 又 | 慢慢地",
    "TIME": "早上 | 夜里 | 今天 | 从前",
    "NAME": "小明 | 王先生 | 李老师",
}


def draw(grammar: dict[str, str], symbol: str, chance: random.Random) -> list[str]:
    """The words of one way to write `symbol`."""
    if symbol not in grammar:
        return [symbol]
    ways = grammar[symbol].split(" | ")
    (way,) = chance.choices(ways, [1 / rank for rank in range(1, len(ways) + 1)])
    return [word for part in way.split() for word in draw(grammar, part, chance)]


def main() -> None:
    language, count, seed = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    grammar, chance = (ENGLISH, CHINESE)[language == "zh"], random.Random(f"{language} {seed}")
    for _ in range(count):
        words = draw(grammar, "S", chance)
        if language == "zh":
            print("".join(words))
        else:
            print(re.sub(r" (?=[.,?])", "", " ".join(words)).capitalize())


if __name__ == "__main__":
    main()
