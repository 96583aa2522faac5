"""Analysts read pages and report what they are about; they never touch memory."""

from langgraph_memoryos.analysts.deterministic import DeterministicAnalyst
from langgraph_memoryos.analysts.model import ModelAnalyst
from langgraph_memoryos.analysts.protocol import Analyst

__all__ = ["Analyst", "DeterministicAnalyst", "ModelAnalyst"]
