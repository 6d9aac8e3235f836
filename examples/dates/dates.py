#!/usr/bin/env python3
"""Write dates as people say them, in English and Chinese, with their ISO form, as JSONL.

    {"id":"train-1","src":"the third of March, nineteen eighty-four","tgt":"1984-03-03"}

The splits share no date: the days of the years 1900 to 2099 are shuffled once, the first thousand
are for the test, the second thousand for validation, and training draws from all the others. The
same arguments give the same bytes.
"""

# ruff: noqa: SIM905  # lists of words read best as words

from __future__ import annotations

import argparse
import json
import random
import signal
import sys
from collections.abc import Callable, Iterator
from datetime import date, timedelta

FIRST, LAST = date(1900, 1, 1), date(2099, 12, 31)
HELD_OUT = {"test": slice(0, 1000), "valid": slice(1000, 2000)}

MONTHS = (
    "January February March April May June July August September October November December"
).split()
WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    " sixteen seventeen eighteen nineteen"
).split()
TENS = "_ _ twenty thirty forty fifty sixty seventy eighty ninety".split()
ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}
HAN_DIGITS = "〇一二三四五六七八九"
HAN_WEEKDAYS = "一二三四五六日"

# Each pattern is as likely as any other of its language.
ENGLISH = (
    "{day} {month} {year}",
    "{month} {day}, {year}",
    "{month} {day} {digits}",
    "{day}-{month}-{digits}",
    "{ordinal} {month} {year}",
    "{ordinal} of {month} {year}",
    "the {ordinal} of {month}, {year}",
    "the {ordinal} of {month} in {year}",
    "{month} {ordinal}, {year}",
    "{month} the {ordinal}, {year}",
    "{digits}, {month} {ordinal}",
    "in {year}, on the {ordinal} of {month}",
    "{weekday} {day} {month} {year}",
    "{weekday}, {month} {day}, {year}",
    "{weekday}, {month} {ordinal}, {year}",
    "{weekday} the {ordinal} of {month}, {year}",
    "on {weekday}, {month} the {ordinal}, {year}",
    "{day} {month} {digits} ({weekday})",
)
CHINESE = (
    "{year}年{month}月{day}日",
    "{year}年{month}月{day}号",
    "{year}年的{month}月{day}号",
    "{year}年{month}月{day}日{weekday}",
    "{year}年{month}月{day}号，{weekday}",
    "{weekday}，{year}年{month}月{day}日",
)
NUMERIC = ("{0.year}/{0.month}/{0.day}", "{0.year}.{0.month}.{0.day}")

Form = Callable[[date, random.Random], str]


def cardinal(number: int) -> str:
    """A number below 100 in English: `eighty-four`."""
    if number < 20:
        return UNITS[number]
    tens, unit = divmod(number, 10)
    return f"{TENS[tens]}-{UNITS[unit]}" if unit else TENS[tens]


def ordinal(number: int) -> str:
    """Its ordinal: `eighty-fourth`."""
    start, hyphen, last = cardinal(number).rpartition("-")
    if last.endswith("y"):
        return f"{last[:-1]}ieth"
    return start + hyphen + ORDINALS.get(last, f"{last}th")


def short_ordinal(number: int) -> str:
    """Its ordinal in digits: `21st`."""
    ending = "th" if number in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def spoken_year(year: int, rng: random.Random) -> str:
    """As a year is read: `nineteen eighty-four`, `nineteen oh five`, `two thousand and one`."""
    century, rest = divmod(year, 100)
    if century == 20 and (rest == 0 or rng.random() < 0.5):
        return f"two thousand and {cardinal(rest)}" if rest else "two thousand"
    if rest < 10:
        return f"{cardinal(century)} oh {UNITS[rest]}" if rest else f"{cardinal(century)} hundred"
    return f"{cardinal(century)} {cardinal(rest)}"


def han_number(number: int) -> str:
    """A number from 1 to 31 in Chinese: `二十一`."""
    tens, unit = divmod(number, 10)
    ten = ("", "十", "二十", "三十")[tens]
    return ten + HAN_DIGITS[unit] if unit else ten


def english(day: date, rng: random.Random) -> str:
    """A date in English."""
    letters = rng.choice((None, 3))
    digits = str(day.year)
    text = rng.choice(ENGLISH).format(
        weekday=WEEKDAYS[day.weekday()][:letters],
        day=day.day,
        ordinal=rng.choice((ordinal, short_ordinal))(day.day),
        month=MONTHS[day.month - 1][:letters],
        digits=digits,
        year=rng.choice((digits, spoken_year(day.year, rng))),
    )
    return text.lower() if rng.random() < 0.25 else text


def chinese(day: date, rng: random.Random) -> str:
    """A date in Chinese."""
    year, month, number = str(day.year), str(day.month), str(day.day)
    if rng.random() < 0.5:
        zero = rng.choice("〇零")
        year = "".join(HAN_DIGITS[int(digit)] for digit in year).replace("〇", zero)
        month, number = han_number(day.month), han_number(day.day)
    weekday = rng.choice(("星期", "礼拜", "周")) + HAN_WEEKDAYS[day.weekday()]
    return rng.choice(CHINESE).format(year=year, month=month, day=number, weekday=weekday)


def numeric(day: date, rng: random.Random) -> str:
    """Digits alone, the year first, so that nobody takes the day for the month."""
    return rng.choice(NUMERIC).format(day)


FORMS: tuple[Form, ...] = (english, english, english, chinese, chinese, numeric)


def days_of(split: str, seed: int) -> list[date]:
    """The days that belong to a split, in random order."""
    days = [FIRST + timedelta(days=n) for n in range((LAST - FIRST).days + 1)]
    random.Random(seed).shuffle(days)
    return days[HELD_OUT.get(split, slice(2000, None))]


def write_records(split: str, count: int, seed: int) -> Iterator[dict[str, str]]:
    """Records of a split: held-out days once each, training days as they are drawn."""
    days = days_of(split, seed)
    rng = random.Random(f"{seed} {split}")
    drawn = days[:count] if split in HELD_OUT else rng.choices(days, k=count)
    for number, day in enumerate(drawn, 1):
        source = rng.choice(FORMS)(day, rng)
        yield {"id": f"{split}-{number}", "src": source, "tgt": day.isoformat()}


def main() -> None:
    parser = argparse.ArgumentParser(description="Write dates and their ISO form as JSONL.")
    parser.add_argument("split", choices=("train", "valid", "test"))
    parser.add_argument("--count", type=int, default=1000, help="records; 1000 at most if held out")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.split in HELD_OUT and arguments.count > 1000:
        parser.error("a held-out split has 1000 dates")
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends us quietly
    sys.stdout.reconfigure(encoding="utf-8")
    for record in write_records(arguments.split, arguments.count, arguments.seed):
        print(json.dumps(record, ensure_ascii=False))


if __name__ == "__main__":
    main()
