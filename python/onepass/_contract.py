"""What PyTorch's contract has in words and numbers, for tensors and arrays alike."""

# The reductions, and the library's numbers for them.
CODES = {"mean": 0, "sum": 1, "none": 2}
NAMES = {code: name for name, code in CODES.items()}

SIZES_DIFFER = ("Using a target size ({}) that is different to the input size ({}). This will likely lead to incorrect "
                "results due to broadcasting. Please ensure they have the same size.")
WEIGHT_DIFFERS = "Weights and input must have the same size."
