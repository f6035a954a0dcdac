"""The page about states is made from the table that decides."""

import runpy

from tests.docs.pages import ROOT


def test_the_page_about_states_is_the_one_the_rules_make():
    made = runpy.run_path(str(ROOT / "docs" / "generate_states.py"))["page"]()
    assert (ROOT / "docs" / "reference" / "states.md").read_text() == made + "\n", (
        "run: python docs/generate_states.py > docs/reference/states.md"
    )
