"""A picture of a record: bytes a second over the number of elements, a panel a loss and mode, the limit dashed."""

from .clock import Absent
from .machine import installed

COLORS = {"onepass": "#d62728", "torch eager": "#ff7f0e", "torch.compile": "#1f77b4", "jax": "#2ca02c",
          "numpy": "#9467bd", "limit": "#444444"}
TITLES = {"forward": "value", "step": "value and gradient"}


def check():
    """Before anything is measured."""
    if not installed("matplotlib"):
        raise Absent("--plot needs matplotlib, which is not installed: pip install matplotlib")


def draw(path, record):
    """Raises Absent if there is nothing over sizes in it."""
    check()
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = [row for row in record["results"] if row["section"] == "sizes" and row["mode"] in TITLES]
    panels = list(dict.fromkeys((row["device"], row["type"], row["mode"], row["loss"]) for row in rows))
    if not panels:
        raise Absent("--plot draws figures over sizes, and the record has none: measure --cases sizes")
    lines = len(dict.fromkeys(panel[:3] for panel in panels))
    columns = -(-len(panels) // lines)
    figure, axes = pyplot.subplots(lines, columns, figsize=(4.2 * columns, 3.2 * lines), sharex=True, squeeze=False)
    for axis, panel in zip(axes.flat, panels):
        draw_panel(axis, panel, [row for row in rows if (row["device"], row["type"], row["mode"], row["loss"]) == panel])
    for axis in axes.flat[len(panels):]:
        axis.set_visible(False)
    labels = {label: line for axis in axes.flat for line, label in zip(*axis.get_legend_handles_labels())}
    figure.legend(labels.values(), labels.keys(), loc="lower center", ncol=len(labels), frameon=False)
    figure.suptitle(f"{', '.join(record['hardware'].values())}, onepass {record['versions'].get('onepass', '')}, "
                    f"{record['date'][:10]}")
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    figure.savefig(path)
    pyplot.close(figure)


def draw_panel(axis, panel, rows):
    device, type, mode, loss = panel
    for name, color in COLORS.items():
        points = sorted((row["elements"], 1e-9 * row.get("moved", {}).get(name, row["bytes"]) / row["found"][name])
                        for row in rows if name in row["found"])
        if points:
            axis.plot(*zip(*points), color=color, label=name, marker="" if name == "limit" else "o", markersize=3,
                      linestyle="--" if name == "limit" else "-", linewidth=1 if name == "limit" else 1.5)
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    axis.set_title(f"{loss}, {TITLES[mode]}, {type}, {'GPU' if device == 'cuda' else 'CPU'}", fontsize=9)
    axis.set_xlabel("elements", fontsize=8)
    axis.set_ylabel("GB/s", fontsize=8)
    axis.tick_params(labelsize=7)
    axis.grid(alpha=0.25)
