"""Speakers' names in a question, in several languages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraph_memoryos.speakers import SpeakerNames


@pytest.mark.parametrize(("names", "asked", "left"), [
    (["Caroline", "Melanie"], "What did Caroline's mother give Melanie?", "What did   mother give  ?"),
    (["Anna Smith"], "Where does Anna live, and Smith?", "Where does   live, and  ?"),
    (["Anna Smith"], "where does anna live, and smith?", "where does   live, and  ?"),
    (["Al"], "Is Al allergic to almonds?", "Is   allergic to almonds?"),
    (["Will Art"], "Which art will Will like?", "Which art will   like?"),
    (["travel_agent", "assistant", "bot7"], "Which travel assistant did I use?", "Which travel assistant did I use?"),
    (["Élodie", "Øyvind"], "What did Élodie cook for Øyvind?", "What did   cook for  ?"),
    (["May"], "What did I do in May?", "What did I do in May?"),
    (["Mara"], "Who is Mara?", "Who is Mara?"),
    (["小明"], "小明上周去哪里了？", " 上周去哪里了？"),
    (["민수"], "민수가 좋아하는 음식은?", " 가 좋아하는 음식은?"),
    (["Анна"], "где живёт анна?", "где живёт  ?"),
    (["C.J. (bot)"], "What does C.J. (bot) bake?", "What does   bake?"),
    (["Melanie"], "Melanie?", "Melanie?"),
    ([], "Melanie?", "Melanie?"),
    (["", "  "], "What now?", "What now?"),
])
def test_names_are_left_out(names: list[str], asked: str, left: str) -> None:
    assert SpeakerNames(frozenset(names)).left_out_of(asked) == left


@given(st.frozensets(st.text(max_size=12), max_size=5), st.text(max_size=60))
def test_any_names_and_any_text_leave_something(names: frozenset[str], text: str) -> None:
    left = SpeakerNames(names).left_out_of(text)
    assert bool(left.strip()) == bool(text.strip())
    assert len(left) <= len(text) + len(names) + 60
