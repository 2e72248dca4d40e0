"""Typed comparison of mathematical answers, for math_answer.py.

  stated       a completion -> the text of the answer that it states last
  latex        text -> tokens: LaTeX, plain text and Unicode in one spelling
  expressions  tokens -> an expression, its value, equality of two of them
  units        names of units -> dimension and factor
  kinds        the kinds of answers
  reals        sets of real numbers: intervals, unions, solved inequalities
  reading      text -> an answer of one of the kinds
  agreement    does a stated answer say what the reference answer says?

Nothing here solves anything: what an expression may contain is a list, and a text with
anything else is compared as text.
"""
