"""The 90 dimensions of a user and the fields of the static profiles, as data.

The dimensions are those the paper takes from AlignX (Li et al. 2025, arXiv 2503.15463): 40 of basic needs
and personality, 7 of AI alignment, 43 content interests. Only dimensions with evidence are ever stored. A
profile field is what somebody *stated*; a trait is what dialogue *suggests*, which is why age and gender
occur in both.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, get_args

TraitGroup = Literal["basic_needs_and_personality", "ai_alignment", "content_interests"]
"""The three groups: 40, 7 and 43 dimensions."""

UserProfileName = Literal[
    "name",
    "gender",
    "birth_year",
    "occupation",
    "employer",
    "education",
    "location",
    "nationality",
    "language",
    "relationship_status",
    "family",
    "pets",
    "health_conditions",
    "dietary_needs",
]
"""Static facts about themselves that users state."""

AgentProfileName = Literal["name", "role", "character"]
"""Static facts about the agent, given by whoever configures it."""

USER_PROFILE_NAMES: tuple[str, ...] = get_args(UserProfileName)
AGENT_PROFILE_NAMES: tuple[str, ...] = get_args(AgentProfileName)


@dataclass(frozen=True, kw_only=True)
class TraitDimension:
    """One dimension: its snake_case name, its group, and one line that says what a high level means."""

    name: str
    group: TraitGroup
    description: str


_BASIC_NEEDS_AND_PERSONALITY = """
age_group: the stage of life that dialogue suggests
gender: the gender that dialogue suggests
neuroticism: tends to worry, stress and mood swings
extraversion: seeks company, is talkative and energetic
openness: curious, imaginative, likes the new
agreeableness: kind, trusting, cooperative
conscientiousness: organised, diligent, dependable
food: what and how the user likes to eat
living_environment: the kind of home and surroundings the user prefers
sleep: sleeping habits and how much rest matters
investment: willingness to invest and to take financial risk
saving: how much the user puts aside
physical_safety: how much safety of body and health matters
environmental_safety: how much a safe and stable surrounding matters
depth_of_interaction: prefers deep conversation to small talk
approach_to_conflict: faces conflict rather than avoiding it
communication_style: prefers concise or detailed communication
work_environment: the kind of workplace the user prefers
recognition_by_others: how much being recognised matters
personal_achievement: how much reaching own goals matters
area_of_knowledge: the field the user knows or wants to know best
learning_style: how the user likes to learn
creative_expression: the form in which the user likes to create
order: need for tidiness and structure
retention: need to keep and collect things
inviolacy: need to protect self-respect
infavoidance: need to avoid failure and embarrassment
counteraction: need to overcome defeat by trying again
seclusion: need to be left alone
dominance: need to lead and influence others
deference: need to admire and follow others
autonomy: need for independence
contrariance: need to be different and to oppose
abasement: readiness to accept blame and to submit
aggression: readiness to attack or to punish
affiliation: need for friendship and belonging
rejection: readiness to exclude others
nurturance: need to care for others
succorance: need to be cared for
play: need for fun without a purpose
"""

_AI_ALIGNMENT = """
harmlessness: cares that answers do no harm
instruction_following: cares that answers follow instructions exactly
honesty: cares that the assistant admits what it does not know
truthfulness: cares that answers are factually right
helpfulness: cares that answers are of practical use
coherence: cares that answers are logical and consistent
complexity: cares that answers are deep and sophisticated
"""

_CONTENT_INTERESTS = """
science knowledge psychology cinema entertainment gaming parenting imagination anime sports law workplace pets
travel health stories cars food_culture education current_events home_decor international_affairs
finance campus_life digital_technology emotions humour music reading painting dance crafts photography
culture fitness art stationery_and_planners celebrities outdoors camping social_sciences weddings fashion
"""


def _dimensions() -> Iterator[TraitDimension]:
    described: tuple[tuple[TraitGroup, str], ...] = (
        ("basic_needs_and_personality", _BASIC_NEEDS_AND_PERSONALITY),
        ("ai_alignment", _AI_ALIGNMENT),
    )
    for group, lines in described:
        for line in lines.strip().splitlines():
            name, _, description = line.partition(": ")
            yield TraitDimension(name=name, group=group, description=description)
    for name in _CONTENT_INTERESTS.split():
        topic = name.replace("_", " ")
        yield TraitDimension(
            name=name, group="content_interests", description=f"interest in content about {topic}"
        )


DIMENSIONS: Mapping[str, TraitDimension] = MappingProxyType({each.name: each for each in _dimensions()})
"""All 90 dimensions by name, in the order of the groups."""


def dimensions_of(group: TraitGroup) -> tuple[TraitDimension, ...]:
    """Return the dimensions of one group, in order."""
    return tuple(each for each in DIMENSIONS.values() if each.group == group)
