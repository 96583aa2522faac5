"""The functions as schemas: for a model that calls tools, and for one that can only fill in JSON."""

import json
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any, Literal, Union

from pydantic import BaseModel, Field, create_model

from langgraph_memoryos.functions import ARGUMENTS, NO_HEARTBEAT
from langgraph_memoryos.stores.blocks import Block
from langgraph_memoryos.virtual_settings import VirtualContextSettings

HEARTBEAT = Field(
    default=False, description="True: you are called again at once to see the result and go on."
)


@cache
def with_heartbeat(name: str) -> type[BaseModel]:
    """Return a function's argument model as the loop offers it, with ``request_heartbeat``."""
    model = ARGUMENTS[name]
    if name in NO_HEARTBEAT:
        return model
    return create_model(
        model.__name__, __base__=model, __doc__=model.__doc__, request_heartbeat=(bool, HEARTBEAT)
    )


@cache
def tool_schemas(names: tuple[str, ...]) -> tuple[dict[str, Any], ...]:
    """Return the functions in the form that ``bind_tools`` of any chat model takes."""
    return tuple(
        {
            "type": "function",
            "function": {
                "name": name,
                "description": ARGUMENTS[name].__doc__,
                "parameters": _parameters(with_heartbeat(name)),
            },
        }
        for name in names
    )


def _parameters(model: type[BaseModel]) -> dict[str, Any]:
    schema = model.model_json_schema()
    properties = {
        name: {key: value for key, value in entry.items() if key != "title"}
        for name, entry in schema["properties"].items()
    }
    return {"type": "object", "properties": properties, "required": schema.get("required", [])}


@cache
def call_schema(names: tuple[str, ...]) -> type[BaseModel]:
    """Return one model over all functions, for chat models that cannot call tools: a thought and one call."""
    calls = tuple(_call_model(name) for name in names)
    choice: Any = Union[calls] if len(calls) > 1 else calls[0]  # noqa: UP007 - made of a tuple at run time
    fields: Any = {"call": (Annotated[choice, Field(description="The function to call.")], ...)}
    model: type[BaseModel] = create_model("FunctionCall", __doc__="What you do next.", **fields)
    return model


def _call_model(name: str) -> type[BaseModel]:
    fields: Any = {"function": (Literal[name], ...), "arguments": (with_heartbeat(name), ...)}
    title = f"{ARGUMENTS[name].__name__}Call"
    model: type[BaseModel] = create_model(title, __doc__=ARGUMENTS[name].__doc__, **fields)
    return model


def signatures(names: Sequence[str]) -> str:
    """Return the functions as a list for a prompt, for models that cannot be given tools."""
    lines = []
    for name in names:
        fields = ", ".join(with_heartbeat(name).model_fields)
        lines.append(f"- {name}({fields}): {ARGUMENTS[name].__doc__}")
    return "\n".join(lines)


def schema_text(names: tuple[str, ...], *, native: bool) -> str:
    """Return what the functions add to a model's input, for counting its tokens."""
    return json.dumps(tool_schemas(names)) if native else signatures(names)


def blocks_of(settings: VirtualContextSettings) -> list[Block]:
    """Return the blocks an agent starts with."""
    return [
        Block(
            label=spec.label,
            value=spec.value,
            description=spec.description,
            limit=spec.limit or settings.block_limit_characters,
            read_only=spec.read_only,
            shared=spec.shared,
        )
        for spec in settings.blocks
    ]
