"""Which cases of a test with many of them a quick run (ONEPASS_TEST_QUICK=1) leaves out, for the tests of the package and
of the tool."""
import os

KEPT = 6  # one of so many, each time another of every loss


def leave_out(config, items, many, others=()):
    """Those of tests with so many cases or more, and the others."""
    gone = set(others)
    cases = {}
    for item in items if os.environ.get("ONEPASS_TEST_QUICK") == "1" else ():
        cases.setdefault(item.nodeid.split("[")[0], []).append(item)
    gone.update(item for own in cases.values() if len(own) >= many
                for index, item in enumerate(own) if (index + index // KEPT) % KEPT)
    if gone:
        config.hook.pytest_deselected(items=list(gone))
        items[:] = [item for item in items if item not in gone]
