"""Names as a plot has room for them: what all of them say is left out, and what tells them apart is kept."""

LONGEST = 40


def divided(names):
    """(what all of these different names say, what each says beyond it): phrases between commas, and the words that the first
    phrases begin with."""
    parts = [name.split(", ") for name in names]
    whole = [phrase for phrase in parts[0] if all(phrase in of for of in parts)]
    words = [", ".join([phrase for phrase in of if phrase not in whole] or of[:1]).split(" ") for of in parts]
    begin = 0
    while parts[0][0] not in whole and all(len(of) > begin + 1 for of in words) and len({of[begin] for of in words}) == 1:
        begin += 1
    rest = [" ".join(of[begin:]) for of in words]
    if len(set(rest)) < len(names):
        return "", names
    return ", ".join(filter(None, [" ".join(words[0][:begin]).rstrip(","), *whole])), rest


def cut(name, longest, others):
    """Its beginning; where another one would read alike both its ends, or else its beginning with a number."""
    for head in (longest - 1, (longest - 1) // 2):
        tail = len(name) - (longest - 1 - head)
        if not any(other != name and other[:head] == name[:head] and other.endswith(name[tail:]) for other in others):
            return f"{name[:head].rstrip(' ,')}\u2026{name[tail:]}"
    return f"{name[:longest - 6]}\u2026 ({others.index(name) + 1})"


def labels(names, longest=LONGEST):
    """Of names that stand together. Those that differ stay different."""
    different = list(dict.fromkeys(names))
    texts = divided(different)[1] if len(different) > 1 else different
    found = dict(zip(different, texts))
    return [text if len(text) <= longest else cut(text, longest, texts) for text in (found[name] for name in names)]


def in_common(names):
    """What labels() leaves out, to be said once: "resnet50 fp32, torch kernels"."""
    different = list(dict.fromkeys(names))
    return divided(different)[0] if len(different) > 1 else ""
