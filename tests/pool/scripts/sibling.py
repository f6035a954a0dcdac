"""A module beside the script."""

ANSWER = 42


def helper() -> str:
    return "from beside"
