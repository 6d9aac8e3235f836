"""What is valid in a scheme of tags, by regular expressions."""

import re

SPAN = {
    "iob2": r"B{k} (?:I{k} )*",
    "iobes": r"S{k} |B{k} (?:I{k} )*E{k} ",
    "bmes": r"S{k} |B{k} (?:M{k} )*E{k} ",
    "bilou": r"U{k} |B{k} (?:I{k} )*L{k} ",
}
LETTERS = {"iob2": "BI", "iobes": "BIES", "bmes": "BMES", "bilou": "BILU"}


def spans(tags, scheme):
    """Kind, start and end of each span; None where the tags are not as the scheme has them."""
    text = "".join(f"{tag} " for tag in tags)
    of_kind = "|".join(SPAN[scheme].replace("{k}", kind) for kind in ("-X", "-Y", ""))
    if not re.fullmatch(f"(?:O |{of_kind})*", text):
        return None
    found = []
    for match in re.finditer(f"O |{of_kind}", text):
        if match[0] != "O ":
            start = text[: match.start()].count(" ")
            found.append((match[0].split()[0][1:], start, start + match[0].count(" ")))
    return found
