"""Writes unicode_tables.cpp from Python's own copy of the Unicode Character Database:

    python3 make_unicode_tables.py > unicode_tables.cpp
"""
import unicodedata

# The places are those of the enum in unicode.h.
CATEGORIES = ("Cn Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co").split()
END = 0x110000


def runs(value_of):
    """(first code point, value) wherever the value changes."""
    found = []
    for point in range(END):
        value = value_of(chr(point))
        if not found or found[-1][1] != value:
            found.append((point, value))
    return found


def decompositions():
    """(code point, first, second or 0, whether the pair composes to it); Hangul is computed."""
    for point in range(END):
        text = unicodedata.decomposition(chr(point))
        if not text or text.startswith("<"):
            continue
        parts = [int(part, 16) for part in text.split()]
        pair = "".join(map(chr, parts))
        composes = len(parts) == 2 and unicodedata.normalize("NFC", pair) == chr(point)
        yield point, parts[0], parts[1] if len(parts) == 2 else 0, int(composes)


def lower_cases():
    """(first, last, step, distance) of code points whose small letter is at one distance."""
    found = []
    for point in range(END):
        small = chr(point).lower()
        if small == chr(point) or len(small) != 1:
            continue
        distance = ord(small) - point
        if found:
            first, last, step, known = found[-1]
            if known == distance and (point - last == step or first == last and point - last <= 2):
                found[-1] = (first, point, point - last, known)
                continue
        found.append((point, point, 1, distance))
    return found


def rows(items):
    line = " "
    for item in items:
        if len(line) + 1 + len(item) > 100:
            print(line)
            line = " "
        line += " " + item
    print(line)


print(f"""// Made by make_unicode_tables.py from Unicode {unicodedata.unidata_version}.
#include "runtime/data/text/unicode_tables.h"

namespace stepop {{
namespace {{

// clang-format off
constexpr CategoryRun kCategories[] = {{""")
rows(f"{{{point},{CATEGORIES.index(name)}}}," for point, name in runs(unicodedata.category))
print("};\n\nconstexpr CategoryRun kCombiningClasses[] = {")
rows(f"{{{point},{value}}}," for point, value in runs(unicodedata.combining))
print("};\n\nconstexpr Decomposition kPairs[] = {")
rows("{%d,%d,%d,%d}," % item for item in decompositions())
print("};\n\nconstexpr LowerCaseRun kLowerCases[] = {")
rows("{%d,%d,%d,%d}," % item for item in lower_cases())
print("""};
// clang-format on

}  // namespace

const std::span<const CategoryRun> kCategoryRuns = kCategories;
const std::span<const CategoryRun> kCombiningClassRuns = kCombiningClasses;
const std::span<const Decomposition> kDecompositions = kPairs;
const std::span<const LowerCaseRun> kLowerCaseRuns = kLowerCases;

}  // namespace stepop""")
