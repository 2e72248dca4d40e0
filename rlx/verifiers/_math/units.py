"""Names of units -> what they measure and how large they are."""
import fractions
import re

# Of each quantity: names, = size of the first one in terms of the quantity's base.
_TABLE = """
length: m meter metre = 1; km kilometer kilometre = 1000; cm centimeter centimetre = 1/100; mm millimeter millimetre = 1/1000; nm nanometer = 1/1000000000; in inch = 127/5000; ft foot feet = 381/1250; yd yard = 1143/1250; mi mile = 201168/125
mass: g gram = 1; kg kilogram = 1000; mg milligram = 1/1000; t ton tonne = 1000000; lb lbs pound = 45359237/100000; oz ounce = 45359237/1600000
time: s sec second = 1; ms millisecond = 1/1000; min minute = 60; h hr hour = 3600; day = 86400; week = 604800
months: month = 1; year yr = 12; decade = 120; century = 1200
volume: l liter litre = 1; ml milliliter millilitre = 1/1000; gallon gal = 3785411784/1000000000; quart = 946352946/1000000000; pint = 473176473/1000000000; cup = 2365882365/10000000000
dollars: $ dollar usd buck = 1; cent ¢ = 1/100
euros: € euro eur = 1
pounds sterling: £ gbp = 1
yen: ¥ yen jpy = 1
rupees: ₹ rupee rs inr = 1
angle: degree deg = 1
radians: rad radian = 1
celsius: °c celsius = 1
fahrenheit: °f fahrenheit = 1
temperature: k kelvin = 1
force: n newton = 1
energy: j joule = 1; kj kilojoule = 1000; ev = 1/1000000; cal calorie = 4184/1000; kwh = 3600000
power: w watt = 1; kw kilowatt = 1000
pressure: pa pascal = 1; kpa = 1000; atm = 101325
voltage: v volt = 1
current: a amp ampere = 1
resistance: ohm = 1
charge: c coulomb = 1
amount: mol mole = 1
frequency: hz hertz = 1; khz = 1000; mhz = 1000000
data: byte = 1; kb = 1000; mb = 1000000; gb = 1000000000; bit = 1/8
units: unit = 1
"""
_INSTEAD = ({"celsius", "fahrenheit", "temperature"},
            {"dollars", "euros", "pounds sterling", "yen", "rupees"})
_POWERS = {"square": 2, "sq": 2, "squared": 2, "cubic": 3, "cubed": 3}
_SCALES = {"hundred": 10**2, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12,
           "dozen": 12}
_PERCENT = ("%", "percent", "per cent", "percents")
# Words that change what stands before them: no unit, whatever the question says.
_NO_UNIT = frozenset(
    "a an the is are was not no and or nor but than to of if then else less more fewer greater at "
    "least most about between from minus plus times over under by choose factorial half double "
    "triple quarter third pi wrong incorrect false instead actually rather wait except pair pairs "
    "score percent not squared cubed square root power th tenth hundredth thousandth halve halves "
    "tens ten one two three four five six seven eight nine ten eleven twelve".split())


def _known():
  known = {}
  for line in _TABLE.strip().splitlines():
    quantity, _, groups = line.partition(": ")
    for group in groups.split("; "):
      names, _, size = group.rpartition(" = ")
      for name in names.split(): known.setdefault(name, (quantity, fractions.Fraction(size)))
  return known


# Things that answers count, each a unit of its own.
_COUNTED = frozenset(
    "animal apple ball bag bar bird boat book bottle bowl box boy bus cake candle candy car card cat chair "
    "child children chicken class coin cookie cow crayon customer dog doll egg employee error family fish "
    "flower friend game girl glass goal group guest horse house item job kid lap lemon letter man men marble "
    "match member mistake muffin notebook number orange outfit page painting pair_of paper part party pen pencil "
    "people person piece pizza plant plate player pack package pie point problem puppy question rabbit "
    "ring rock room row sandwich seat sheep shell shirt shoe side slice solution song spoon stamp star step "
    "stick sticker stone story student subset team ticket tile toy train tree triangle trip truck turn vehicle "
    "visitor vote way win woman women word worker".split())
_KNOWN = _known() | {word: (word, fractions.Fraction(1)) for word in _COUNTED}


def is_name(word):
  """Is it the name of a unit, of two letters or more?"""
  return len(word) > 1 and _of(word) is not None


def scale(words):
  """(number that the first words multiply by, the other words): "million dollars"."""
  first, _, rest = words.partition(" ")
  if (name := _stem(first.lower())) in _SCALES: return _SCALES[name], rest.strip()
  return 1, words


def is_percent(words): return words.lower() in _PERCENT


def read(words, context=frozenset()):
  """(size, {quantity: power}) of "km/h", "square feet" or "m/s^2"; None if it is no unit.

  Args:
    context: words of the question and of the reference answer: of four letters or more,
      "apples" is a unit where they have it, and measures apples.
  """
  # 3M is three million; 3K is three thousand, unless temperatures are spoken of.
  if words in ("M", "B", "T"): return None
  if words == "K" and not context & {"k", "kelvin", "temperature"}: return None
  words = re.sub(r"[{}()]|\\cdot", " ", words)
  words = re.sub(r"\^\s*(-?)\s*(\d)", r"^\1\2", words)
  size, powers, sign, pending = fractions.Fraction(1), {}, 1, 1
  tokens = re.findall(r"[^\W\d_]+|[$€£¥₹¢]|\^-?\d|[/*.]", words.lower())
  if "".join(tokens) != re.sub(r"\s", "", words.lower()): return None
  last = None
  for token in tokens:
    if token in "/" or token == "per": sign = -1
    elif token in "*.": pass
    elif token in _POWERS and token not in ("squared", "cubed"): pending = _POWERS[token]
    elif token[0] == "^" or token in ("squared", "cubed"):
      if last is None: return None
      n = _POWERS.get(token) or int(re.sub(r"[^\d-]", "", token))
      quantity, unit, s = last
      powers[quantity] += s * (n - 1)
      size *= unit ** (s * (n - 1))
      last = None
    elif token == "mph":
      powers |= {"length": 1, "time": -1}
      size *= fractions.Fraction(201168, 125 * 3600)
    else:
      measure = _of(token)
      if measure is None:
        stem = _stem(token)
        if len(token) < 4 or {token, stem} & _NO_UNIT or stem in _SCALES: return None
        if stem not in context: return None
        measure = (stem, fractions.Fraction(1))
      quantity, unit = measure
      s = sign * pending
      powers[quantity] = powers.get(quantity, 0) + s
      size *= unit ** s
      last, pending = (quantity, unit, s), 1
  return size, {k: v for k, v in powers.items() if v and k != "units"}


def context(*texts):
  """The words that stand in texts, as `read` wants them."""
  return frozenset(_stem(w) for t in texts for w in re.findall(r"[^\W\d_]+|[%$€£¥]", t.lower()))


def asked(quantities, words):
  """Sizes of the units of a quantity among the words of a question."""
  if len(quantities) != 1 or list(quantities.values()) != [1]: return set()
  measures = [_of(w) for w in words if len(w) > 1 and w != "in"]
  return {size for quantity, size in filter(None, measures) if quantity in quantities}


def is_other(quantities, words):
  """Does the question name another unit instead: cubic ones for an area, celsius for fahrenheit?"""
  named = {_of(w)[0] for w in words if len(w) > 1 and _of(w)}
  for one_of in _INSTEAD:
    if quantities.keys() & one_of and named & one_of and not quantities.keys() & named: return True
  n = quantities.get("length") if len(quantities) == 1 else None
  named = {2 * ("square" in words), 3 * ("cubic" in words)} - {0}
  return n in (2, 3) and len(named) == 1 and n not in named


def _of(word):
  word = word.lower()
  if word in _KNOWN: return _KNOWN[word]
  if word.endswith("es") and word[:-2] in _KNOWN and len(word) > 4: return _KNOWN[word[:-2]]
  if word.endswith("s") and len(word) > 3: return _KNOWN.get(word[:-1])
  return None


def _stem(word):
  return word[:-1] if len(word) > 3 and word[-1] == "s" and word[-2] not in "su" else word
