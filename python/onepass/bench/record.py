"""A record: what was measured, when, on what hardware and with which versions; and the ratios that it holds.

{"date": ..., "command": ..., "hardware": {"cpu": name, "cuda": name}, "versions": {...}, "results": [row, ...], ...}

A row is a case: device, section, loss, mode, type, elements, variant, the bytes that must move, and in `found` the
median of each contender, in seconds unless `unit` says otherwise. `moved` has the bytes of contenders that move others,
`spread` the range of their turns as a share of the median, `goals` what is asked of us, `missing` who could not take
part and why.

bench/tables.py of the source tree reads this file by itself, so it imports nothing of the package.
"""

import json
import os

HEAD = {"date": str, "command": str, "hardware": dict, "versions": dict, "results": list}
ROW = {"device": str, "section": str, "loss": str, "mode": str, "type": str, "elements": int, "variant": str,
       "found": dict}


class Unreadable(Exception):
    """Why a file is no record."""


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            record = json.load(file)
    except (OSError, ValueError) as error:
        raise Unreadable(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    check(path, record, HEAD, "the record")
    if not record["hardware"] or not all(record["versions"].values()):
        raise Unreadable(f"{path}: it does not say on what hardware and with which versions")
    for row in record["results"]:
        check(path, row, ROW, "a result")
        if not all(isinstance(figure, (int, float)) and figure >= 0 for figure in row["found"].values()):
            raise Unreadable(f"{path}: a result has a figure that is no number: {row['found']}")
    return record


def check(path, found, wanted, what):
    if not isinstance(found, dict):
        raise Unreadable(f"{path}: {what} should be an object, not {type(found).__name__}")
    for key, kind in wanted.items():
        if not isinstance(found.get(key), kind):
            raise Unreadable(f"{path}: \"{key}\" of {what} should be of type {kind.__name__}")


def write(path, record):
    """Whole or not at all, a row a line."""
    head = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in record.items() if key != "results"]
    rows = ",\n".join("    " + json.dumps(row) for row in record["results"])
    folder = os.path.dirname(path)
    if folder:
        os.makedirs(folder, exist_ok=True)
    partial = path + ".partial"
    with open(partial, "w", encoding="utf-8") as file:
        file.write("{\n" + ",\n".join(head) + ',\n  "results": [\n' + rows + "\n  ]\n}\n")
    os.replace(partial, path)


def time_ratio(row, peer, ours="onepass"):
    """Our time as a share of a peer's; None if either is missing."""
    found = row["found"]
    return found[ours] / found[peer] if found.get(ours) and found.get(peer) else None


def rate_ratio(row, peer="limit", ours="onepass"):
    """Our bytes a second as a share of a peer's."""
    ratio = time_ratio(row, peer, ours)
    moved = row.get("moved", {})
    return moved.get(ours, row.get("bytes", 1)) / moved.get(peer, row.get("bytes", 1)) / ratio if ratio else None


def by_rate(peer):
    """Whether a peer is compared by bytes a second: it moves others than we do."""
    return peer == "limit" or peer.startswith("onepass, ")


def ratio(row, peer):
    return rate_ratio(row, peer) if by_rate(peer) else time_ratio(row, peer)


def misses(row, peer):
    """Whether a goal is missed, by the figure as it is printed."""
    found, goal = ratio(row, peer), row.get("goals", {}).get(peer)
    if found is None or goal is None:
        return False
    return round(found, 3) < goal if by_rate(peer) else round(found, 3) > round(goal, 3)
