"""Strings to try tokenizers on: `varied` makes the same ones on every machine."""
import random
import unicodedata

_SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|eot_id|>", "<s>", "</s>",
            "<unk>", "<end_of_turn>", "<|x", "|>", "<0x0A>", "<repo_name>")
_WORDS = ("the", "The", "THE", "don't", "I'LL", "we've", "O'Neill's", "rock'n'roll", "naïve",
          "reward", "log-prob", "e.g.", "x_i", "snake_case", "camelCase", "HTTPServer",
          "antidisestablishmentarianism", "Schrödinger", "coöperate", "ﬁne", "ſo", "İstanbul")
_NUMBERS = ("0", "7", "42", "123", "1234", "1,234,567.89", "3.14159", "1e-05", "0x1F", "50%",
            "½", "²³", "٣٤٥", "१२३", "Ⅷ", "㊿", "𝟙𝟚", "1️⃣", "10:45", "2024-02-29", "$9.99")
_SCRIPTS = ("Привет, мир", "Γειά σου Κόσμε", "שלום עולם", "مرحبا بالعالم", "नमस्ते दुनिया",
            "বাংলা ভাষা", "தமிழ்", "ไทยแลนด์", "ພາສາລາວ", "မြန်မာ", "ខ្មែរ", "አማርኛ", "ᏣᎳᎩ",
            "日本語のテスト", "ひらがなカタカナ", "漢字仮名交じり文", "你好，世界！", "한국어 문장", "한",
            "𐍈𐌰𐌹𐍂𐌷𐍄", "𒀀𒁀", "Việt Nam", "ქართული", "հայերեն", "ⵜⴰⵎⴰⵣⵉⵖⵜ", "Ꭰ𑀓")
_EMOJI = ("🤖", "👩‍👩‍👧‍👦", "🏳️‍🌈", "👍🏽", "🇩🇪", "❤️", "©®™", "☕︎", "😀😀😀")
_MARKS = ("e\u0301", "n\u0303", "a\u0323\u0302", "Z\u0351\u034d", "\u0301", "ｶﾞ", "\u00c5\u212b",
          "\u1112\u1161\u11ab", "o\u0308\u0304", "क्\u200dष")
_SPACES = (" ", "  ", "   ", "\t", "\t\t", "\n", "\n\n", "\r\n", "\r", "\v", "\f", "\x85",
           "\xa0", "\u2003", "\u2028", "\u2029", "\u3000", "\u200b", " \n", "\n ", "    ",
           " \t ", "\n\n\n\n", " " * 15, "\u1680", "\u180e")
_CONTROL = ("\x00", "\x01", "\x07", "\x1b[31m", "\x7f", "\x9f", "\u200e", "\ufeff", "\ufffd",
            "\ufffe", "\U0010ffff", "\ue000", "\u2060", "\u00ad")
_CODE = ("def f(x):\n    return x ** 2\n", "for (int i=0;i<n;++i) {\n\ta[i] += 1;\n}\n", "<b>bold</b>",
         "SELECT * FROM t WHERE a='b';", "{\"k\": [1, 2.5, null]}", "/* c */ // d", "#!/bin/sh\n",
         "x -> y => z", "a && b || !c", "~/.ssh/id", "https://a.b/c?d=e&f=%20#g", "\\n\\t\\\\", "`x`",
         "@decorator\nclass A(B): pass", "λx. x", "if x:\n\n\n    y()\n\n")
_MATHS = ("x² + y² = z²", "∑_{i=1}^n a_i", "\\frac{1}{2}", "∀ε>0 ∃δ", "a ≤ b ≠ c", "√2 ≈ 1.414",
          "$\\mathbb{E}[r]$", "f′(x)", "2^10", "A⊗B", "½ × ¾", "10⁻³", "−5", "x₁…xₙ", "∫₀¹dx")
_PUNCTUATION = ("...", "…", "—", "--", "?!", "''", "\"", "“q”", "‘s", "’s", "'s", "'S", "'ſ", "'", "«»",
                "(((", "][", "::", "//", "%%", "***", "___", "▁", "▁▁", "·", "¿¡", "、。", "|||")
_LISTS = (_WORDS, _NUMBERS, _SCRIPTS, _EMOJI, _MARKS, _SPACES, _CONTROL, _CODE, _MATHS, _PUNCTUATION,
          _SPECIAL, (" ",), (" ",))  # Plain spaces more often than anything else.


def varied(n=2000):
  """`n` different strings: each part alone, long runs, mixtures, and random characters."""
  rng = random.Random(0)
  def mixture(size):
    return "".join(rng.choice(rng.choice(_LISTS)) for _ in range(size))
  def character():  # One that Unicode 3.2 had: younger ones depend on a library's tables.
    while True:
      c = chr(rng.randrange(rng.choice((0x80, 0x250, 0x3000, 0x10000, 0x20000))))
      if unicodedata.ucd_3_2_0.category(c) not in ("Cn", "Cs"): return c
  out = ["", *(part for parts in _LISTS[:-2] for part in parts)]
  out += [part + extra for part in _SPACES for extra in ("a", " a", "1")]
  out += [unit * 300 for unit in ("a", "ab", "1", " ", "\n", "日", "!", "'", "é")]
  out = dict.fromkeys(out)  # Each once.
  while len(out) < n:
    kind = len(out) % 4
    if kind == 0: text = "".join(character() for _ in range(rng.randrange(1, 30)))
    elif kind == 1:
      text = " ".join(rng.choice(rng.choice(_LISTS[:3])) for _ in range(rng.randrange(1, 40)))
    else: text = mixture(rng.randrange(2, 24))
    out[text] = None
  return list(out)[:n]
