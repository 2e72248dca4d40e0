"""What a verifier raises when it cannot tell; imports nothing, so that all of them may."""


class Unknown(Exception):
  """No verdict, for a reason that the completion cannot cause: the verdict is NaN.

  An endpoint that does not answer, a sandbox that does not start before the completion's
  first instruction, a prompt that states nothing to compare with. Whatever else a verifier
  raises, and a timeout, a crash or a lack of memory, counts as caused by the completion:
  its verdict is 0, unless the reference alone, `fn(prompt, prompt.answer)`, fails in the
  same way. A verifier that returns NaN says the same as one that raises this, without
  the reason.
  """
