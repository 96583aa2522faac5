"""The list of dimensions is the paper's: 40 + 7 + 43."""

import re
from typing import get_args

import pytest

from langgraph_memoryos.traits import (
    AGENT_PROFILE_NAMES,
    DIMENSIONS,
    USER_PROFILE_NAMES,
    TraitGroup,
    dimensions_of,
)


def test_there_are_ninety_dimensions_in_three_groups():
    assert [len(dimensions_of(group)) for group in get_args(TraitGroup)] == [40, 7, 43]
    assert len(DIMENSIONS) == 90


def test_names_are_snake_case_and_described():
    for name, dimension in DIMENSIONS.items():
        assert name == dimension.name
        assert re.fullmatch(r"[a-z]+(_[a-z]+)*", name)
        assert dimension.description


@pytest.mark.parametrize(
    "name", ["age_group", "openness", "succorance", "harmlessness", "stationery_and_planners"]
)
def test_dimensions_of_every_group_are_there(name):
    assert name in DIMENSIONS


def test_dimensions_cannot_be_changed():
    with pytest.raises(TypeError):
        DIMENSIONS["mood"] = DIMENSIONS["order"]


def test_profile_fields():
    assert {"name", "gender", "birth_year", "occupation", "location", "language"} <= set(USER_PROFILE_NAMES)
    assert AGENT_PROFILE_NAMES == ("name", "role", "character")
