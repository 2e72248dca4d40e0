"""The exception for unknown verdicts; imports nothing, so that all verifiers may import it."""


class Unknown(Exception):
  """The verdict is unknown (NaN), for a reason that the completion cannot cause.

  Examples are an endpoint that does not respond, a sandbox that does not start, and a prompt
  without a reference answer. Any other exception, a timeout, a crash or a lack of memory counts
  as caused by the completion: its verdict is 0, unless the call with the reference answer,
  `fn(prompt, prompt.answer)`, fails in the same way. Returning NaN has the same meaning as
  raising this exception, without a reason.
  """
