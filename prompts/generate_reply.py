"""The system prompt of a reply: the agent's own instructions, how to use memory, and the memory section."""

HOW_TO_ANSWER = """\
You talk with a user you know from earlier conversations. Answer in the language of the user's last message. \
Use the memory below where it helps, and do not mention it unless asked. What the user says now is newer \
than memory. If neither memory nor the conversation holds a fact about the user, say you do not know it."""

WITHOUT_MEMORY = """\
Answer in the language of the user's last message. You know nothing of earlier conversations with this \
user; if asked about them, say so."""


def system_prompt(memory_text: str, *, instructions: str = "") -> str:
    """Return the system prompt of one turn.

    Args:
        memory_text: What :func:`langgraph_memoryos.prompts.memory_section.section` made; may be empty.
        instructions: The developer's own instructions; they come first.
    """
    parts = (instructions.strip(), HOW_TO_ANSWER if memory_text else WITHOUT_MEMORY, memory_text)
    return "\n\n".join(part for part in parts if part)
