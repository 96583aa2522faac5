"""What analysts return for good, bad and hostile replies, and what the one without a model finds."""

import json

import pytest
from pydantic import ValidationError

from langgraph_memoryos.analysts import DeterministicAnalyst, ModelAnalyst
from langgraph_memoryos.analysts.protocol import Digest, DigestInput, SegmentPages, without_model
from langgraph_memoryos.analysts.statements import stated_facts, stated_name
from langgraph_memoryos.analysts.structured import athink, think
from langgraph_memoryos.errors import ModelOutputError, ModelUnavailableError
from langgraph_memoryos.prompts.analyse_pages import PageReadings
from langgraph_memoryos.records import Chain, Fact, Page, Segment
from langgraph_memoryos.text_size import count_tokens
from tests.scripted_model import ScriptedModel

ODD_TEXTS = [
    "",
    " \n",
    "\0",
    "\ud800",
    "😀",
    "我叫王小明，我住在北京",
    "مرحبا بالعالم",
    "x" * 1_000_000,
    "a b " * 250_000,
]


def page(number: int, query: str, reply: str = "", *, said_at: float | None = None) -> Page:
    return Page(
        query=query,
        reply=reply,
        said_at=number * 60.0 if said_at is None else said_at,
        thread_id="t",
        source_ids=(f"m{number}",),
        page_id=f"p{number}",
        user_id="u",
        agent_id="a",
        sequence=number,
    )


def segment(*pages: Page, **fields) -> SegmentPages:
    return SegmentPages(segment=Segment(segment_id="s1", user_id="u", agent_id="a", **fields), pages=pages)


PAGES = (
    page(1, "I adopted a puppy called Biscuit in Boston.", "I recommend the vet on Elm Street. I am Max."),
    page(2, "How do I train Biscuit?", "Start early."),
)
GOOD_READINGS = {
    "pages": [
        {
            "page": 1,
            "continues_previous": True,
            "keywords": ["Puppy", "golden retriever", "none"],
            "chain_summary": "A puppy.",
        },
        {
            "page": 2,
            "continues_previous": True,
            "keywords": ["training"],
            "chain_summary": "A puppy and its training.",
        },
    ]
}
GOOD = json.dumps(GOOD_READINGS)


def analyse(model: ScriptedModel, pages=PAGES, previous=None, chain=None):
    return think(ModelAnalyst().analyse_pages(previous=previous, chain=chain, pages=pages), model)


# --- model: form of the reply


@pytest.mark.parametrize("structured", [True, False])
@pytest.mark.parametrize(
    "reply",
    [
        GOOD,
        f"```json\n{GOOD}\n```",
        f"Sure! Here it is:\n{GOOD}\nAnything else?",
        f"{{broken}} {GOOD}",
        json.dumps(GOOD_READINGS | {"extra": 1}),
        GOOD.replace(
            "[{", '[{"page": 99, "continues_previous": false, "keywords": [], "chain_summary": "x"}, {', 1
        ),
    ],
)
def test_usable_replies_are_used_at_once(reply, structured):
    model = ScriptedModel(replies=[reply], structured=structured)
    analyses, usage = analyse(model)
    assert [each.page_id for each in analyses] == ["p1", "p2"]
    assert [each.continues_previous for each in analyses] == [False, True]
    assert analyses[0].keywords == ("puppy", "golden", "retriever")
    assert analyses[1].chain_meta == "A puppy and its training."
    assert usage == {"model_calls": 1, "input_tokens": 10, "output_tokens": 5}


MALFORMED = {
    "empty": "",
    "null": "null",
    "refusal": "I'm sorry, I cannot help with that.",
    "truncated": GOOD[:60],
    "missing key": '{"pages": [{"page": 1}]}',
    "wrong type": '{"pages": "none"}',
    "list": GOOD[10:-1],
    "missing page": json.dumps({"pages": GOOD_READINGS["pages"][:1]}),
    "error text": "Error code: 429 - rate limit",
    "deep": '{"a":' * 5_000,
    "number": "42",
}


@pytest.mark.parametrize("structured", [True, False])
@pytest.mark.parametrize("reply", MALFORMED.values(), ids=MALFORMED)
def test_a_bad_reply_is_shown_its_error_once(reply, structured):
    model = ScriptedModel(replies=[reply, GOOD], structured=structured)
    analyses, usage = analyse(model)
    assert len(analyses) == 2
    assert usage["model_calls"] == 2
    assert "cannot be used" in model.asked[1][-1].text
    assert model.asked[1][-2].type == "ai"


@pytest.mark.parametrize("reply", MALFORMED.values(), ids=MALFORMED)
def test_two_bad_replies_end_the_step(reply):
    model = ScriptedModel(replies=[reply, reply, GOOD])
    with pytest.raises(ModelOutputError) as caught:
        analyse(model)
    assert len(model.asked) == 2
    assert "Biscuit" not in str(caught.value)


@pytest.mark.parametrize("error", [TimeoutError("slow"), ConnectionError("gone")])
@pytest.mark.parametrize("structured", [True, False])
def test_transport_errors_propagate(error, structured):
    with pytest.raises(type(error)):
        analyse(ScriptedModel(replies=[error], structured=structured))


def test_a_server_without_structured_output_gets_the_schema_in_the_prompt():
    model = ScriptedModel(replies=[GOOD], structured=True, rejects=True)
    assert len(analyse(model)[0]) == 2
    assert "chain_summary" in model.asked[0][0].text
    assert [message.type for message in model.asked[0]] == ["system", "human"]


class LengthFinishReasonError(Exception):
    """Named as the error OpenAI's client raises for a reply that was cut off."""


def test_a_reply_cut_off_by_the_client_is_asked_again():
    model = ScriptedModel(replies=[LengthFinishReasonError("cut"), GOOD], structured=True)
    analyses, usage = analyse(model)
    assert len(analyses) == 2
    assert usage["model_calls"] == 2


def rejected_by_client(reply: str) -> ValidationError:
    with pytest.raises(ValidationError) as caught:
        PageReadings.model_validate_json(reply)
    return caught.value


@pytest.mark.parametrize("reply", ["not json", '{"x": 1}', "null", ""])
def test_a_reply_that_the_client_itself_rejects_is_asked_again(reply):
    model = ScriptedModel(replies=[rejected_by_client(reply), GOOD], structured=True)
    analyses, usage = analyse(model)
    assert len(analyses) == 2
    assert usage["model_calls"] == 2


def test_fenced_json_that_the_client_itself_rejects_is_used():
    model = ScriptedModel(replies=[rejected_by_client(f"```json\n{GOOD}\n```")], structured=True)
    assert len(analyse(model)[0]) == 2


def test_calls_stay_out_of_the_reply_stream():
    model = ScriptedModel(replies=[GOOD, GOOD])
    for config in (None, {"tags": ["mine"]}):
        think(ModelAnalyst().analyse_pages(previous=None, chain=None, pages=PAGES), model, config)
    assert all("nostream" in tags for tags in model.tags_seen)
    assert "mine" in model.tags_seen[1]


async def test_async_gives_the_same():
    for structured in (True, False):
        expected = analyse(ScriptedModel(replies=["", GOOD], structured=structured))
        thinking = ModelAnalyst().analyse_pages(previous=None, chain=None, pages=PAGES)
        assert await athink(thinking, ScriptedModel(replies=["", GOOD], structured=structured)) == expected


def test_without_a_model_nothing_is_guessed():
    with pytest.raises(ModelUnavailableError):
        think(ModelAnalyst().analyse_pages(previous=None, chain=None, pages=PAGES), None)
    with pytest.raises(ValueError, match="above 0"):
        ModelAnalyst(prompt_tokens=0)


def test_nothing_to_read_asks_nothing():
    analyst = ModelAnalyst()
    assert without_model(analyst.analyse_pages(previous=None, chain=None, pages=())) == ()
    assert without_model(analyst.summarise_segments(())) == ()
    assert without_model(analyst.digest_segments(DigestInput(segments=()))) == Digest()


# --- model: content of the reply


def test_blank_readings_fall_back_to_what_was_said():
    blank = {"continues_previous": False, "keywords": ["N/A"], "chain_summary": "None"}
    model = ScriptedModel(replies=[json.dumps({"pages": [{"page": 1, **blank}, {"page": 2, **blank}]})])
    analyses, _ = analyse(model)
    assert "Biscuit" in analyses[0].chain_meta
    assert "biscuit" in analyses[0].keywords


def test_summaries_that_echo_the_instructions_fall_back_to_what_was_said():
    echo = {
        "segment": 1,
        "title": "2 to 6 words",
        "summary": "At most four sentences.",
        "keywords": ["sentences"],
    }
    model = ScriptedModel(replies=[json.dumps({"segments": [echo]})])
    summary = think(ModelAnalyst().summarise_segments([segment(*PAGES)]), model)[0][0]
    assert "Biscuit" in summary.summary
    assert summary.title == "I adopted a puppy called Biscuit in Boston"


def test_a_chain_goes_on_from_the_page_before():
    model = ScriptedModel(replies=[GOOD])
    analyses, _ = analyse(model, previous=page(0, "Hello"), chain=Chain(chain_id="c", meta="A greeting."))
    assert analyses[0].continues_previous
    assert "A greeting." in model.asked[0][1].text


def test_prompts_are_bounded_whatever_was_said():
    pages = [page(number, "a b " * 250_000, "猫" * 300_000) for number in range(1, 8)]
    model = ScriptedModel(replies=["", ""], structured=True)
    with pytest.raises(ModelOutputError):
        think(
            ModelAnalyst(prompt_tokens=3000).analyse_pages(previous=pages[0], chain=None, pages=pages), model
        )
    assert count_tokens("".join(message.text for message in model.asked[0])) < 4500


def test_segments_get_title_summary_and_keywords():
    readings = {
        "segments": [
            {"segment": 7, "title": "x", "summary": "x", "keywords": []},
            {
                "segment": 1,
                "title": "A new puppy",
                "summary": "Anna has \ud83d Biscuit." + " long" * 500,
                "keywords": ["Puppy"],
            },
            {"segment": 2, "title": "unknown", "summary": "N/A", "keywords": ["none"]},
        ]
    }
    model = ScriptedModel(replies=[json.dumps(readings)])
    first, second = think(
        ModelAnalyst().summarise_segments([segment(*PAGES), segment(page(3, "I like tea."))]), model
    )[0]
    assert (first.title, first.keywords) == ("A new puppy", ("puppy",))
    assert len(first.summary) <= 1200
    first.summary.encode()
    assert (second.title, second.summary) == ("tea", "I like tea.")


def digest(reading: dict, pages=PAGES, user_facts=(), agent_facts=()) -> Digest:
    empty = {"user_profile": [], "user_traits": [], "user_facts": [], "agent_facts": []}
    given = DigestInput(segments=(segment(*pages),), user_facts=user_facts, agent_facts=agent_facts)
    model = ScriptedModel(replies=[json.dumps(empty | reading)], structured=True)
    return think(ModelAnalyst().digest_segments(given), model)[0]


def fact(text="Anna has a puppy called Biscuit.", number=1, evidence="a puppy called Biscuit", supersedes=()):
    return {"text": text, "page": number, "evidence": evidence, "supersedes": list(supersedes)}


def known(fact_id: str, text: str, collection="user_knowledge") -> Fact:
    return Fact(fact_id=fact_id, collection=collection, text=text, user_id="u", agent_id="a")


def test_nothing_to_store_is_a_normal_answer():
    assert digest({}) == Digest()


def test_proven_facts_are_kept_once_with_their_pages():
    found = digest({"user_facts": [fact(), fact(), fact(evidence="A PUPPY,\n called  biscuit!")]})
    assert [(each.text, each.source_page_ids) for each in found.user_facts] == [(fact()["text"], ("p1",))]


@pytest.mark.parametrize(
    "reading",
    [
        fact(evidence=""),
        fact(evidence="a"),
        fact(evidence="She is a doctor"),
        fact(number=0),
        fact(number=99),
        fact(number=-1),
        fact(number=2),
        fact(evidence="the vet on Elm Street"),
        fact(text="Anna is a pilot.", evidence="I adopted a puppy"),
        *(
            fact(text=text)
            for text in (
                "None",
                "N/A",
                "unknown",
                "无",
                "",
                " ",
                "Not specified.",
                "No facts",
                "Error: 429",
                "The user did not mention anything",
                "用户没有提到",
            )
        ),
    ],
    ids=range(20),
)
def test_unproven_user_facts_and_placeholders_are_dropped(reading):
    assert digest({"user_facts": [reading]}) == Digest()


def test_agent_facts_come_from_replies_only():
    said = fact(text="Max recommended the vet on Elm Street.", evidence="I recommend the vet on Elm Street")
    assert [each.text for each in digest({"agent_facts": [said]}).agent_facts] == [said["text"]]
    assert digest({"agent_facts": [fact()]}) == Digest()
    assert digest({"user_facts": [said]}) == Digest()


def test_chinese_facts_and_facts_in_another_script():
    pages = (page(1, "我对花生过敏。", "好的"),)
    kept = digest(
        {
            "user_facts": [
                fact(text="用户对花生过敏", evidence="花生过敏"),
                fact(text="The user is allergic to peanuts.", evidence="我对花生过敏"),
            ]
        },
        pages,
    )
    assert len(kept.user_facts) == 2


def test_only_shown_facts_of_the_same_list_are_superseded():
    user = [known(f"f{number}", f"Old {number}") for number in range(1, 6)]
    agent = [known("g1", "Agent old", "agent_traits")]
    reading = fact(supersedes=["U1", "A1", "U99", "f2", "", "U1", " U2 "])
    assert digest({"user_facts": [reading]}, user_facts=user, agent_facts=agent).user_facts[0].supersedes == (
        "f1",
        "f2",
    )
    everything = fact(supersedes=[f"U{number}" for number in range(1, 6)])
    assert len(digest({"user_facts": [everything]}, user_facts=user).user_facts[0].supersedes) == 3
    same = known("f9", "anna has a puppy called BISCUIT")
    assert digest({"user_facts": [fact(supersedes=["U1"])]}, user_facts=[same]).user_facts[0].supersedes == ()


def test_traits_need_a_known_dimension_a_reason_and_proof():
    trait = {
        "dimension": "pets",
        "level": "high",
        "reason": "Adopted a puppy.",
        "page": 1,
        "evidence": "adopted a puppy",
    }
    assert [each.dimension for each in digest({"user_traits": [trait]}).user_traits] == ["pets"]
    for change in (
        {"dimension": "mood"},
        {"level": "unknown"},
        {"reason": "N/A"},
        {"evidence": "loves cats"},
        {"page": 3},
    ):
        assert digest({"user_traits": [trait | change]}) == Digest()


def test_profile_fields_need_a_known_name_and_names_must_have_been_said():
    pages = (page(1, "Call me Anna, I moved to Boston."), page(2, "We moved to Salem now, I am 30."))
    field = {"name": "name", "value": "Anna", "page": 1, "evidence": "call me anna"}
    places = [
        {"name": "location", "value": value, "page": number, "evidence": "moved to"}
        for value, number in (("Salem", 2), ("Boston", 1))
    ]
    found = digest({"user_profile": [field, *places]}, pages)
    assert [(each.name, each.value) for each in found.user_profile] == [
        ("name", "Anna"),
        ("location", "Salem"),
    ]
    for change in (
        {"name": "shoe_size"},
        {"value": "Hannah Smith"},
        {"value": "null"},
        {"evidence": "my name is Anna"},
    ):
        assert digest({"user_profile": [field | change]}, pages) == Digest()


def test_a_flood_of_entries_is_capped_and_long_texts_cut():
    flood = [fact(text=f"Anna's puppy {number} " + "x" * 5_000) for number in range(500)]
    found = digest({"user_facts": flood})
    assert len(found.user_facts) == 40
    assert all(len(each.text) <= 300 for each in found.user_facts)


# --- deterministic


def test_rules_judge_continuity_by_time_and_shared_words():
    pages = [
        page(1, "I adopted a golden retriever puppy, Biscuit.", "Puppies need training."),
        page(2, "How should I train Biscuit?", "Short sessions."),
        page(3, "Thanks!", "Welcome."),
        page(4, "What is the weather in Rome in spring?", "Warm."),
        page(5, "Is Rome crowded in spring?", "Yes.", said_at=9_000.0),
    ]
    analyses = without_model(DeterministicAnalyst().analyse_pages(previous=None, chain=None, pages=pages))
    assert [each.continues_previous for each in analyses] == [False, True, True, False, False]
    assert "Biscuit" in analyses[2].chain_meta
    assert "Biscuit" not in analyses[3].chain_meta
    assert analyses[3].keywords[:3] == ("weather", "rome", "spring")


@pytest.mark.parametrize("text", ODD_TEXTS, ids=range(len(ODD_TEXTS)))
def test_rules_accept_any_text(text):
    analyst = DeterministicAnalyst()
    pages = (page(1, text, text), page(2, text, "ok"))
    analyses = without_model(analyst.analyse_pages(previous=None, chain=None, pages=pages))
    summaries = without_model(analyst.summarise_segments([segment(*pages)]))
    found = without_model(analyst.digest_segments(DigestInput(segments=(segment(*pages),))))
    for record in (*analyses, *summaries, found):
        json.dumps(record.to_json(), ensure_ascii=False).encode()
    assert all(count_tokens(each.chain_meta) <= 60 for each in analyses)
    assert count_tokens(summaries[0].summary) <= 160


def test_rules_always_say_the_same():
    def run():
        return without_model(DeterministicAnalyst().summarise_segments([segment(*PAGES)]))

    assert run() == run()


def test_summaries_grow_from_the_summary_so_far():
    before = segment(
        page(3, "Biscuit learned to sit."), summary="Anna adopted Biscuit.", keywords=("biscuit", "puppy")
    )
    summary = without_model(DeterministicAnalyst().summarise_segments([before]))[0]
    assert summary.summary == "Anna adopted Biscuit. Biscuit learned to sit."
    assert summary.keywords[:2] == ("biscuit", "puppy")
    assert summary.title == "Anna adopted Biscuit"


def titled(*said, summary=""):
    given = segment(*(page(number, text, "Noted.") for number, text in enumerate(said, 1)), summary=summary)
    return without_model(DeterministicAnalyst().summarise_segments([given]))[0].title


def test_titles_are_whole_clauses_in_any_script():
    assert titled("对了，我家里有只橘猫，叫年糕。", "橘猫最近总掉毛！") == "我家里有只橘猫"
    assert titled("Well, I adopted a puppy (Biscuit): what next?", "The puppy sleeps.") == "I adopted a puppy"
    assert titled("Ну, моя собака болеет.") == (
        "моя собака болеет")
    assert titled("It costs 1,000 kroner today.") == "It costs 1,000 kroner today"


def test_titles_without_a_telling_clause_are_keywords():
    assert titled("Tea?") == "tea, noted"
    assert titled("word " * 500).startswith("word")
    assert len(titled("word " * 500)) < 80
    assert titled("二十三、六月、八月。") != ""


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Hi! My name is Anna Lee.", "Anna Lee"),
        ("My name's Bob and I like it", "Bob"),
        ("你好，我叫王小明，很高兴", "王小明"),
        ("我的名字是李雷。", "李雷"),
        ("Me llamo José García y vivo en Madrid", "José García"),
        ("Je m\u2019appelle Zoé", "Zoé"),
        ("меня зовут Иван", "Иван"),
        ("私の名前は田中です", "田中"),
        ("My name is not important", ""),
        ("Call me later", ""),
        ("我叫外卖。", ""),
        ("我叫他来", ""),
        ("Her name is Eve", ""),
        ("What is my name?", ""),
        ("", ""),
    ],
)
def test_stated_names(text, name):
    assert stated_name(text) == name


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("I live in Boston. Do you?", ("I live in Boston.",)),
        ("我住在北京。你呢？", ("我住在北京。",)),
        ("我对花生过敏", ("我对花生过敏",)),
        ("If I live in Boston, what then", ()),
        ("Do I live in Boston?", ()),
        ("I love it", ()),
        ("He said I live in Rome", ()),
        ("Ich wohne in Berlin.", ("Ich wohne in Berlin.",)),
        ("I own a boat. " * 5, ("I own a boat.",)),
    ],
)
def test_stated_facts(text, facts):
    assert stated_facts(text) == facts


def test_the_rules_never_take_a_reply_for_the_user():
    given = DigestInput(segments=(segment(page(1, "Who are you?", "My name is Max. I live in the cloud.")),))
    assert without_model(DeterministicAnalyst().digest_segments(given)) == Digest()


def test_rules_are_checked():
    with pytest.raises(ValueError, match="chain_gap_seconds"):
        DeterministicAnalyst(chain_gap_seconds=0)
