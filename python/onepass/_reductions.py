"""The names of reductions, and the numbers that the library has for them."""

CODES = {"mean": 0, "sum": 1, "none": 2}

SIZES_DIFFER = ("Using a target size ({}) that is different to the input size ({}). This will likely lead to incorrect "
                "results due to broadcasting. Please ensure they have the same size.")
