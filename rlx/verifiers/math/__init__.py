"""Typed comparison of mathematical answers, for math_answer.py.

  tables       words, units and characters, read from tables.toml
  stated       extracts the text of the answer that a completion states last
  latex        splits LaTeX, plain text and Unicode into tokens with one spelling
  expressions  parses, evaluates and compares expressions
  units        parses names of units into dimension and size
  kinds        the kinds of answers
  reals        sets of real numbers: intervals, unions, solved inequalities
  reading      parses the text of an answer into one of the kinds
  questions    reads what a question says about its answer: units, variables, form
  forms        tells whether an answer has the form that the question asks for
  agreement    compares a stated answer with the reference answer

Nothing is solved. Expressions may contain only what tables.toml lists; any other text is
compared as text.
"""
